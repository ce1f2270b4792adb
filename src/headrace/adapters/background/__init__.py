"""Long computations in a process of their own."""
