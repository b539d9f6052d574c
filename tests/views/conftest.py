from __future__ import annotations

from hypothesis import settings

# A busy machine must not fail a property.
settings.register_profile("clickbridge", deadline=None)
settings.load_profile("clickbridge")
