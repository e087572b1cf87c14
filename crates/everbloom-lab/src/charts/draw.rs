//! Charts as SVG, by the crate `plotters`.
//!
//! Colours are Okabe and Ito's, which colour-blind readers can tell apart, and every series has a mark
//! of its own besides. A series of the same name looks the same in every chart.

use super::draw_axis::Span;
use super::{Axis, Figure, Look, Panel, Point, Series};
use everbloom::{Error, Result};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Span, Span>>;

const PANEL: (u32, u32) = (430, 310);
const TITLE_HEIGHT: u32 = 34;
const LEGEND_LINE: u32 = 22;
const MARGIN: u32 = 10;
const FONT: &str = "sans-serif";
const GREY: RGBColor = RGBColor(110, 110, 110);
const GRID: RGBColor = RGBColor(225, 225, 225);
const INK: RGBColor = RGBColor(40, 40, 40);

/// Okabe and Ito's colours; grey stands in for their yellow, which is hard to see on white.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    RGBColor(140, 140, 140),
];

/// Names that look the same in every chart.
const KNOWN: &[(&str, usize)] = &[
    ("SBF", 0),
    ("stable", 0),
    ("RSBF", 1),
    ("reservoir", 1),
    ("ranked", 2),
    ("IBF3", 3),
    ("IBF5", 4),
    ("IBF1", 5),
    ("BF", 6),
    ("bloom", 6),
    ("IBF2", 7),
    ("IBF4", 10),
    ("IBF6", 9),
    ("age_partitioned", 3),
    ("aging", 4),
];

/// How the printed figures of a filter are called.
const AS_PRINTED: &str = ", as printed";

/// A colour and a mark.
#[derive(Clone, Copy)]
struct Style {
    colour: RGBColor,
    mark: usize,
}

/// The look of a number: colours first, then other marks.
fn style(number: usize) -> Style {
    Style { colour: COLOURS[number % COLOURS.len()], mark: (number + number / COLOURS.len()) % 4 }
}

/// The looks of a figure's series, by name.
struct Styles(Vec<Entry>);

/// A series in the legend.
type Entry = (String, Look, Style);

/// A line of the legend: entries and their distance from the left.
type LegendLine<'a> = Vec<(u32, &'a Entry)>;

impl Styles {
    fn of(figure: &Figure) -> Self {
        let mut styles: Vec<Entry> = Vec::new();
        let mut taken: Vec<usize> = Vec::new();
        let series = || figure.panels.iter().flat_map(|panel| &panel.series);
        let known = |name: &str| KNOWN.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
        taken.extend(series().filter_map(|series| known(&series.name)));
        for series in series().filter(|series| !series.points.is_empty()) {
            if styles.iter().any(|(name, _, _)| *name == series.name) {
                continue;
            }
            let number =
                known(&series.name).unwrap_or_else(|| (0..).find(|number| !taken.contains(number)).unwrap_or(0));
            if !is_reference(series.look) {
                taken.push(number);
            }
            // What a paper prints of a filter has the filter's colour.
            let printed = series.name.strip_suffix(AS_PRINTED).and_then(known);
            let style = match (is_reference(series.look), printed) {
                (true, Some(number)) => style(number),
                (true, None) => Style { colour: GREY, mark: number % 4 },
                (false, _) => style(number),
            };
            styles.push((series.name.clone(), series.look, style));
        }
        Styles(styles)
    }

    fn get(&self, name: &str) -> Style {
        self.0.iter().find(|(known, _, _)| known == name).map_or(style(0), |(_, _, style)| *style)
    }
}

fn is_reference(look: Look) -> bool {
    matches!(look, Look::Reference | Look::ReferenceMarks)
}

/// The figure as SVG.
pub fn svg(figure: &Figure) -> Result<String> {
    let mut text = String::new();
    draw(figure, &mut text).map_err(|problem| Error::io(format!("the chart cannot be drawn: {problem}")))?;
    Ok(text)
}

/// Whatever the drawing library has to complain about.
type Drawn<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn draw(figure: &Figure, text: &mut String) -> Drawn {
    let columns = match figure.panels.len() {
        0..=1 => 1,
        2 | 4 => 2,
        _ => 3,
    };
    let rows = figure.panels.len().div_ceil(columns).max(1);
    let panel = if columns == 1 { (640, 380) } else { PANEL };
    let width = columns as u32 * panel.0 + 2 * MARGIN;
    let styles = Styles::of(figure);
    let legend = legend_lines(&styles, width);
    let title_height = if figure.title.is_empty() { MARGIN } else { TITLE_HEIGHT };
    let head = title_height + legend.len() as u32 * LEGEND_LINE + 4;
    let height = head + rows as u32 * panel.1 + MARGIN;
    let canvas = SVGBackend::with_string(text, (width, height)).into_drawing_area();
    canvas.fill(&WHITE)?;
    if !figure.title.is_empty() {
        let title = (FONT, 17).into_font().style(FontStyle::Bold).color(&INK);
        canvas.draw(&Text::new(figure.title.clone(), (MARGIN as i32 + 4, 12), title))?;
    }
    draw_legend(&canvas, &legend, title_height)?;
    let (_, below) = canvas.split_vertically(head);
    let below = below.margin(0, MARGIN, MARGIN, MARGIN);
    for (area, panel) in below.split_evenly((rows, columns)).iter().zip(&figure.panels) {
        draw_panel(area, panel, &styles)?;
    }
    canvas.present()?;
    Ok(())
}

/// The entries of the legend, with their distance from the left, line by line.
fn legend_lines(styles: &Styles, width: u32) -> Vec<LegendLine<'_>> {
    let mut lines = vec![Vec::new()];
    let mut left = MARGIN + 4;
    for entry in &styles.0 {
        // Letters are about half as wide as high.
        let wide = 46 + entry.0.chars().count() as u32 * 13 / 2;
        if left + wide > width && left > MARGIN + 4 {
            lines.push(Vec::new());
            left = MARGIN + 4;
        }
        if let Some(line) = lines.last_mut() {
            line.push((left, entry));
        }
        left += wide;
    }
    if styles.0.len() <= 1 { Vec::new() } else { lines }
}

fn draw_legend(canvas: &Canvas<'_>, lines: &[LegendLine<'_>], top: u32) -> Drawn {
    let words = (FONT, 13).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
    for (number, line) in lines.iter().enumerate() {
        let middle = (top + number as u32 * LEGEND_LINE + LEGEND_LINE / 2) as i32;
        for (left, (name, look, style)) in line {
            let left = *left as i32;
            let ends = [(left, middle), (left + 26, middle)];
            match look {
                Look::Reference => dashes(ends[0], ends[1])
                    .into_iter()
                    .try_for_each(|dash| canvas.draw(&PathElement::new(dash.to_vec(), GREY.stroke_width(2))))?,
                Look::Marks | Look::ReferenceMarks => {}
                _ => canvas.draw(&PathElement::new(ends.to_vec(), style.colour.stroke_width(2)))?,
            }
            if !matches!(look, Look::Line | Look::Reference) {
                draw_mark(canvas, (left + 13, middle), *style, *look == Look::ReferenceMarks)?;
            }
            canvas.draw(&Text::new(name.clone(), (left + 32, middle), words.clone()))?;
        }
    }
    Ok(())
}

fn dashes(from: (i32, i32), to: (i32, i32)) -> Vec<[(i32, i32); 2]> {
    (from.0..to.0).step_by(9).map(|left| [(left, from.1), ((left + 6).min(to.0), to.1)]).collect()
}

fn draw_mark(canvas: &Canvas<'_>, at: (i32, i32), style: Style, hollow: bool) -> Drawn {
    if hollow {
        // A ring around what was measured, if it agrees.
        return Ok(canvas.draw(&Circle::new(at, 7, style.colour.stroke_width(2)))?);
    }
    let shape: ShapeStyle = style.colour.filled();
    let corner = |x: i32, y: i32| (at.0 + x, at.1 + y);
    match style.mark {
        0 => canvas.draw(&Circle::new(at, 4, shape))?,
        1 => canvas.draw(&Polygon::new(vec![corner(0, -5), corner(5, 4), corner(-5, 4)], shape))?,
        2 => canvas.draw(&Rectangle::new([corner(-4, -4), corner(4, 4)], shape))?,
        _ => canvas.draw(&Polygon::new(vec![corner(0, -5), corner(5, 0), corner(0, 5), corner(-5, 0)], shape))?,
    }
    Ok(())
}

/// What the points of a panel need along an axis.
fn span(axis: &Axis, values: impl Iterator<Item = (f64, f64)>) -> Span {
    let log = axis.log_base.is_some();
    let usable = values.filter(|(low, high)| low.is_finite() && high.is_finite() && (!log || *high > 0.0));
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for (below, above) in usable {
        low = low.min(if log && below <= 0.0 { above } else { below });
        high = high.max(above);
    }
    Span::covering(axis, low, high)
}

fn draw_panel(area: &Canvas<'_>, panel: &Panel, styles: &Styles) -> Drawn {
    let points = || panel.series.iter().flat_map(|series| &series.points);
    let mut x = span(&panel.x, points().map(|point| (point.x, point.x)));
    let mut y = span(&panel.y, points().map(|point| (point.y - point.error, point.y + point.error)));
    if panel.series.iter().all(|series| matches!(series.look, Look::Marks | Look::ReferenceMarks)) {
        // No mark lies on an axis.
        (x, y) = (x.with_room_below(), y.with_room_below());
    }
    let mut builder = ChartBuilder::on(area);
    builder.margin(6).margin_right(16).x_label_area_size(40).y_label_area_size(62);
    if !panel.title.is_empty() {
        builder.caption(&panel.title, (FONT, 14).into_font().color(&INK));
    }
    let mut chart = builder.build_cartesian_2d(x.clone(), y.clone())?;
    chart
        .configure_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(GREY)
        .x_desc(&panel.x.name)
        .y_desc(&panel.y.name)
        .axis_desc_style((FONT, 13).into_font().color(&INK))
        .label_style((FONT, 12).into_font().color(&INK))
        .draw()?;
    for series in &panel.series {
        draw_series(&mut chart, series, styles.get(&series.name), (&x, &y))?;
    }
    Ok(())
}

/// Error bars; a band where points are many.
fn draw_errors(chart: &mut Chart<'_, '_>, points: &[Point], look: Look, style: Style, y: &Span) -> Drawn {
    let low = |point: &Point| (point.x, y.clamp(point.y - point.error));
    let high = |point: &Point| (point.x, y.clamp(point.y + point.error));
    let uncertain = || points.iter().filter(|point| point.error > 0.0);
    if look == Look::Line {
        let outline = points.iter().map(low).chain(points.iter().rev().map(high)).collect::<Vec<_>>();
        if uncertain().next().is_some() {
            chart.draw_series([Polygon::new(outline, style.colour.mix(0.25).filled())])?;
        }
        return Ok(());
    }
    let canvas = chart.plotting_area().strip_coord_spec();
    let origin = canvas.get_base_pixel();
    let pixel = |at: (f64, f64)| {
        let at = chart.backend_coord(&at);
        (at.0 - origin.0, at.1 - origin.1)
    };
    for point in uncertain() {
        let (low, high) = (pixel(low(point)), pixel(high(point)));
        let bar = |from: (i32, i32), to: (i32, i32)| PathElement::new(vec![from, to], style.colour.stroke_width(1));
        canvas.draw(&bar(low, high))?;
        for end in [low, high] {
            canvas.draw(&bar((end.0 - 3, end.1), (end.0 + 3, end.1)))?;
        }
    }
    Ok(())
}

fn draw_series(chart: &mut Chart<'_, '_>, series: &Series, style: Style, (x, y): (&Span, &Span)) -> Drawn {
    let inside = |point: &&Point| x.holds(point.x) && y.holds(point.y);
    let points: Vec<Point> = series.points.iter().filter(inside).copied().collect();
    let path = || points.iter().map(|point| (point.x, point.y));
    match series.look {
        Look::LineAndMarks | Look::Line => {
            chart.draw_series(LineSeries::new(path(), style.colour.stroke_width(2)))?;
        }
        Look::Reference => {
            chart.draw_series(DashedLineSeries::new(path(), 6, 4, GREY.stroke_width(2)))?;
        }
        Look::Marks | Look::ReferenceMarks => {}
    }
    draw_errors(chart, &points, series.look, style, y)?;
    if matches!(series.look, Look::LineAndMarks | Look::Marks | Look::ReferenceMarks) {
        let canvas = chart.plotting_area().strip_coord_spec();
        let origin = canvas.get_base_pixel();
        for point in &points {
            let at = chart.backend_coord(&(point.x, point.y));
            let hollow = series.look == Look::ReferenceMarks;
            draw_mark(&canvas, (at.0 - origin.0, at.1 - origin.1), style, hollow)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(points: Vec<Point>, x: Axis, y: Axis) -> Figure {
        let series = |name: &str, look| Series::new(name, look, points.clone());
        let panel = Panel::new("a < b", x, y)
            .series(series("SBF", Look::LineAndMarks))
            .series(series("limit", Look::Reference))
            .series(series("printed", Look::ReferenceMarks))
            .series(series("line", Look::Line));
        Figure::new("f", "Title & more", "").panel(panel.clone()).panel(panel)
    }

    #[test]
    fn charts_name_their_axes_and_series() {
        let points = vec![Point::new(1.0, 2.0), Point { x: 10.0, y: 20.0, error: 3.0 }];
        let text = svg(&figure(points, Axis::log("memory, bits"), Axis::linear("missed, %"))).expect("drawn");
        for part in ["memory, bits", "missed, %", "SBF", "limit", "Title &amp; more", "a &lt; b", "#0072B2"] {
            assert!(text.contains(part), "no {part} in the chart");
        }
    }

    #[test]
    fn charts_without_points_or_with_strange_ones_are_drawn_all_the_same() {
        let strange = vec![
            vec![],
            vec![Point::new(0.0, 0.0)],
            vec![Point::new(-1.0, f64::NAN), Point::new(f64::INFINITY, 1.0)],
            vec![Point { x: 1e300, y: 1e-300, error: 1e300 }, Point::new(1.0, 1.0)],
        ];
        for points in strange {
            for axis in [Axis::linear, Axis::log, Axis::log2] {
                svg(&figure(points.clone(), axis("x"), axis("y"))).expect("drawn");
            }
        }
    }

    #[test]
    fn a_figure_without_panels_is_a_title() {
        assert!(svg(&Figure::new("f", "Title", "")).expect("drawn").contains("Title"));
    }
}
