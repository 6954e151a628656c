"""From a frame to a reply: dispatch, and answers that are large or come later."""
