//! Results for people: terminal tables, agreement between engines, claims of papers
