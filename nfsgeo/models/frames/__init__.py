"""What several networks share: base classes, their settings, and facts about models."""
