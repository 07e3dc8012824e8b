"""Values and pure decisions: jobs, specs, URLs, pages. Nothing here performs input or output."""
