"""The metrics of the provider for images: answers, questions to registries, and kept facts."""

from __future__ import annotations

from typing import Final

from webhook.metrics.registry import Metric

IMAGE_ANSWERS: Final = Metric(
    "waddle_image_answers",
    "counter",
    "Answers of `waddle provider images`, by result: verified, unverified, or error if "
    "nothing is known. kept is stale if the registry failed and the answer is the last "
    "known one.",
    ("answer", "kept"),
)

IMAGE_QUESTIONS: Final = Metric(
    "waddle_image_registry_questions",
    "counter",
    "Requests of the image provider to registries, for the digest of a tag or the "
    "signatures of an image. The outcome is answered, unavailable, refused, untrusted or "
    "fault.",
    ("asked", "outcome"),
)

IMAGE_QUESTION_SECONDS: Final = Metric(
    "waddle_image_registry_question_seconds",
    "histogram",
    "Time from such a request to its answer, including verification.",
    ("asked",),
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)

IMAGE_FLIGHTS: Final = Metric(
    "waddle_image_registry_questions_under_way", "gauge", "Such requests in progress."
)

IMAGES_KEPT: Final = Metric(
    "waddle_images_kept",
    "gauge",
    "Items that the image provider keeps: digests of tags, and facts about signatures.",
    ("kind",),
)

IMAGES_KEPT_BYTES: Final = Metric(
    "waddle_images_kept_bytes", "gauge", "Bytes of these items, about."
)

IMAGE_POLICIES: Final = Metric(
    "waddle_image_policies",
    "gauge",
    "VerificationPolicies by status: active, or error if the newest version is invalid.",
    ("status",),
)
