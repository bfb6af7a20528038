"""A line chart as SVG: memory over time, and the events as vertical lines."""

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 900, 420
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 50, 70
COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b")
TICKS = 5

Points = Sequence[tuple[float, float]]


def line_chart(title: str, unit: str, lines: Mapping[str, Points], events: Sequence[tuple[float, str]]) -> str:
    """`lines` by name, over seconds. The x axis is in minutes."""
    seconds_max = max((at for points in lines.values() for at, _ in points), default=1.0)
    top = max((value for points in lines.values() for _, value in points), default=1.0) * 1.1

    def x(seconds: float) -> float:
        return LEFT + seconds / seconds_max * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{escape(title)}</text>',
    ]
    for tick in range(TICKS + 1):
        value, at = top * tick / TICKS, seconds_max * tick / TICKS
        parts.append(f'<path d="M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:,.0f}</text>')
        label = f"{at / 60:.1f} min"
        parts.append(f'<text x="{x(at):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{label}</text>')
    parts.append(f'<text x="{LEFT}" y="{TOP - 8}" text-anchor="middle">{escape(unit)}</text>')
    for at, name in events:
        parts.append(
            f'<path d="M{x(at):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#999" stroke-dasharray="3 3">'
            f"<title>{escape(name)}</title></path>"
        )
        parts.append(f'<text x="{x(at):.1f}" y="{TOP - 4}" font-size="9" text-anchor="middle">{escape(name)}</text>')
    for number, (name, points) in enumerate(lines.items()):
        color = COLORS[number % len(COLORS)]
        path = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.5"/>')
        at_x = LEFT + number * 160
        parts.append(f'<rect x="{at_x}" y="{HEIGHT - 28}" width="12" height="12" fill="{color}"/>')
        parts.append(f'<text x="{at_x + 17}" y="{HEIGHT - 18}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])
