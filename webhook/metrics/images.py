"""The metrics of the provider for images: answers, questions to registries, and kept facts."""

from __future__ import annotations

from typing import Final

from webhook.metrics.registry import Metric

IMAGE_ANSWERS: Final = Metric(
    "waddle_image_answers",
    "counter",
    "What `waddle provider images` answered about images: verified, unverified, or error where "
    "nothing is known. kept is stale where the registry fails, and this is what was last known.",
    ("answer", "kept"),
)

IMAGE_QUESTIONS: Final = Metric(
    "waddle_image_registry_questions",
    "counter",
    "Questions of the provider for images to registries: what a tag names, or which signatures "
    "an image has. The outcome is answered, unavailable, refused, untrusted or fault.",
    ("asked", "outcome"),
)

IMAGE_QUESTION_SECONDS: Final = Metric(
    "waddle_image_registry_question_seconds",
    "histogram",
    "Time from such a question to its answer, verification included.",
    ("asked",),
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)

IMAGE_FLIGHTS: Final = Metric(
    "waddle_image_registry_questions_under_way", "gauge", "Such questions that are under way."
)

IMAGES_KEPT: Final = Metric(
    "waddle_images_kept",
    "gauge",
    "What the provider for images keeps: digests of tags, and facts about signatures.",
    ("kind",),
)

IMAGES_KEPT_BYTES: Final = Metric("waddle_images_kept_bytes", "gauge", "The same in bytes, about.")

IMAGE_POLICIES: Final = Metric(
    "waddle_image_policies",
    "gauge",
    "VerificationPolicies by status: active, or error for those whose newest version cannot be used.",
    ("status",),
)
