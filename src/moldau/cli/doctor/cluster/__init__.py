"""What is looked at in a cluster: facts, asked for over the wire, and checks of them."""
