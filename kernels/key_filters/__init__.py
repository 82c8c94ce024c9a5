"""Which keys pass a condition, without a look at the others: CI-COUNT, CI-SUM, CI-MAX over bands of time."""
