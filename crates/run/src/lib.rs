//! What an engine gives back: the Run tables, their files, and their provenance
