//! Charts, of the lab's results and of whatever else numbers are drawn for: what one shows; how it looks is the business of
//! `draw`.

mod draw;
mod draw_axis;

pub use draw::svg;

/// What a page needs for its charts to look right in dark mode, too; for `figure svg`.
pub const STYLE: &str = include_str!("charts.css");

/// One or several panels under one title, with one legend.
#[derive(Debug, Clone)]
pub struct Figure {
    /// The file's name, without its ending.
    pub name: String,
    /// The title.
    pub title: String,
    /// What to see in it, in a sentence or two.
    pub caption: String,
    /// The panels, in rows from left to right.
    pub panels: Vec<Panel>,
}

impl Figure {
    /// A figure without panels yet.
    pub fn new(name: &str, title: impl Into<String>, caption: impl Into<String>) -> Self {
        Figure { name: name.into(), title: title.into(), caption: caption.into(), panels: Vec::new() }
    }

    /// Every point as CSV; the axes are named in its first line where all panels have the same.
    pub fn points(&self) -> String {
        let same = |axis: fn(&Panel) -> &Axis| {
            let mut names = self.panels.iter().map(|panel| axis(panel).name.as_str());
            names.next().filter(|first| names.all(|name| name == *first))
        };
        let named = |letter: &str, name: Option<&str>| name.map_or(letter.into(), |name| format!("{letter}: {name}"));
        let (x, y) = (named("x", same(|panel| &panel.x)), named("y", same(|panel| &panel.y)));
        let mut text = format!("panel,series,{},{},standard_error\n", csv_field(&x), csv_field(&y));
        for panel in &self.panels {
            for series in &panel.series {
                let [title, name] = [&panel.title, &series.name].map(|text| csv_field(text));
                let row = |point: &Point| format!("{title},{name},{},{},{}\n", point.x, point.y, point.error);
                series.points.iter().map(row).for_each(|row| text.push_str(&row));
            }
        }
        text
    }

    /// Adds a panel.
    #[must_use]
    pub fn panel(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }
}

/// A field of CSV, quoted where it must be.
fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
}

/// A pair of axes and what is drawn between them.
#[derive(Debug, Clone)]
pub struct Panel {
    /// What tells it from the other panels; may be empty.
    pub title: String,
    /// The axis to the right.
    pub x: Axis,
    /// The axis upwards.
    pub y: Axis,
    /// The lines and points.
    pub series: Vec<Series>,
}

impl Panel {
    /// A panel without series yet.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Panel { title: title.into(), x, y, series: Vec::new() }
    }

    /// Adds a series.
    #[must_use]
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }
}

/// An axis, named in words, with its unit.
#[derive(Debug, Clone)]
pub struct Axis {
    /// What it measures and in which unit.
    pub name: String,
    /// Whether equal steps are equal factors: 10, or 2 for sizes.
    pub log_base: Option<f64>,
    /// What it spans at least; by default what the points need, and 0 where the axis is linear.
    pub range: Option<(f64, f64)>,
}

impl Axis {
    /// An axis of equal steps.
    pub fn linear(name: &str) -> Self {
        Axis { name: name.into(), log_base: None, range: None }
    }

    /// An axis of equal factors.
    pub fn log(name: &str) -> Self {
        Axis { name: name.into(), log_base: Some(10.0), range: None }
    }

    /// An axis of doublings.
    pub fn log2(name: &str) -> Self {
        Axis { name: name.into(), log_base: Some(2.0), range: None }
    }

    /// Says what it spans.
    #[must_use]
    pub fn from(mut self, low: f64, high: f64) -> Self {
        self.range = Some((low, high));
        self
    }
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// A line with a mark at each point: few points.
    LineAndMarks,
    /// A line alone: many points.
    Line,
    /// Marks alone: points without an order.
    Marks,
    /// A dashed grey line: theory, limits, printed figures.
    Reference,
    /// Hollow grey marks: printed figures.
    ReferenceMarks,
}

/// A line or a cloud of points.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name in the legend; the same name has the same colour everywhere.
    pub name: String,
    /// How it is drawn.
    pub look: Look,
    /// Its points, in order.
    pub points: Vec<Point>,
}

/// A point, with the standard error of its height.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// Upwards.
    pub y: f64,
    /// Half the height of its error bar; 0 for none.
    pub error: f64,
}

impl Point {
    /// A point without an error bar.
    pub fn new(x: f64, y: f64) -> Self {
        Point { x, y, error: 0.0 }
    }
}

impl Series {
    /// A series.
    pub fn new(name: impl Into<String>, look: Look, points: impl IntoIterator<Item = Point>) -> Self {
        Series { name: name.into(), look, points: points.into_iter().collect() }
    }
}
