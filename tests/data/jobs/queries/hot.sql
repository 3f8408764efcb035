SELECT auction, price FROM bids WHERE price > 900
