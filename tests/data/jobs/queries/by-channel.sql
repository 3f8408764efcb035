SELECT channel, count(*) AS n FROM bids [RANGE 10 SECONDS] GROUP BY channel
