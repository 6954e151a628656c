"""What is looked at on the machine: facts, gathered at the edge, and checks of them."""
