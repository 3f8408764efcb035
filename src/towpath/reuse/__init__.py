"""Planning with reuse (Kalyvianaki et al., SQPR): streams made once and handed on, in a mixed-integer program."""
