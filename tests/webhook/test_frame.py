"""Frames around tables: cells of several lines, and characters that take two columns."""

from webhook.frame import framed


def test_cells_have_lines_and_characters_their_width():
    assert framed(["A", "B"], [[["日本", "x"], ["e\u0301"]], [["y"], ["long"]]]) == [
        "┌──────┬──────┐",
        "│  A   │  B   │",
        "├──────┼──────┤",
        "│ 日本 │ e\u0301    │",
        "│ x    │      │",
        "│ y    │ long │",
        "└──────┴──────┘",
    ]
