"""When jumping windows answer, and which keys they report."""
