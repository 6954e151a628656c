"""HTTP for scrapers and probes, on the event loop."""
