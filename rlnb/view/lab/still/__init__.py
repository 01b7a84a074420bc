"""A lab for readers without a kernel: pictures and tables."""
