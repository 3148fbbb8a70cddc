"""Pages that show what is in force, what it finds and who enforces it; nothing here writes."""
