//! What the planner takes for 200 goals that are drawn by a seed. The command line, its page, the package and the module are asked the
//! same goals in their own tests, which read the file that this one writes with `EVERBLOOM_BLESS=1`.
//!
//! A line is a JSON object: a goal (`memory`, `fpr`, `expect`, `window`, `importance`), then what is taken, `null` for an error:
//! `plan` for the goal as it is, `stream` where its number of keys is a guess, `set` where nothing may be forgotten, `server` where no
//! arrival may take long. The module's test leaves windows of arrivals out.

use everbloom::planning::{AUTO, for_window};
use everbloom::{Count, Goal, Plan, Result, Size, Span, Window};
use everbloom_all::KINDS;
use everbloom_cells::key::Generator;
use everbloom_forecast::Question;
use std::path::PathBuf;

const GOALS: usize = 200;

/// A goal as it is typed.
struct Typed {
    memory: Option<&'static str>,
    fpr: &'static str,
    expect: Option<&'static str>,
    window: Option<&'static str>,
    importance: bool,
}

fn drawn(generator: &mut Generator) -> Typed {
    let mut one = |among: &[&'static str]| among[generator.below(among.len() as u64) as usize];
    let memory = one(&["", "", "32B", "100B", "1KiB", "7KiB", "64KiB", "300KiB", "1MiB", "5MiB"]);
    let fpr = one(&["10%", "1%", "0.1%", "0.003%", "1e-9"]);
    let expect = one(&["", "", "1", "90", "2k", "30k", "100000", "1M"]);
    let window = one(&["", "", "", "", "500", "20000", "90s", "24h"]);
    let importance = window.is_empty() && one(&["yes", "no", "no"]) == "yes";
    let given = |text: &'static str| Some(text).filter(|text| !text.is_empty());
    Typed { memory: given(memory), fpr, expect: given(expect), window: given(window), importance }
}

impl Typed {
    fn goal(&self) -> Goal {
        let goal = self.memory.into_iter().fold(Goal::new().fpr(self.fpr), |goal, size| goal.memory(Size::from(size)));
        let goal = self.expect.into_iter().fold(goal, |goal, count| goal.expected_items(Count::from(count)));
        if self.importance { goal.with_importance() } else { goal }
    }

    fn window(&self) -> Option<Window> {
        let text = self.window?;
        Some(match Count::from(text).named("window").get() {
            Ok(arrivals) => Window::Arrivals(arrivals),
            Err(_) => Window::Time(Span::from(text).named("window").get().expect("a time")),
        })
    }

    fn plan(&self, goal: &Goal) -> Result<Plan> {
        match self.window() {
            Some(window) => for_window(&window, goal, true, None),
            None => goal.plan_among(KINDS, AUTO),
        }
    }

    fn line(&self) -> String {
        let text = |text: Option<String>| text.map_or("null".into(), |text| format!("\"{text}\""));
        let taken = |goal: Goal| text(self.plan(&goal).ok().map(|plan| plan.spec.to_string()));
        let goal = self.goal();
        format!(
            "{{\"memory\":{},\"fpr\":\"{}\",\"expect\":{},\"window\":{},\"importance\":{},\"plan\":{},\"stream\":{},\"set\":{},\
             \"server\":{}}}\n",
            text(self.memory.map(String::from)),
            self.fpr,
            text(self.expect.map(String::from)),
            text(self.window.map(String::from)),
            self.importance,
            taken(goal.clone()),
            taken(goal.clone().default_memory_bits(64 << 23).open_ended()),
            taken(goal.clone().never_forget()),
            taken(goal.bounded_latency()),
        )
    }
}

fn all() -> Vec<Typed> {
    let mut generator = Generator::seeded(34);
    (0..GOALS).map(|_| drawn(&mut generator)).collect()
}

#[test]
fn every_surface_is_asked_what_the_library_answers() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/goals.jsonl");
    let lines: String = all().iter().map(Typed::line).collect();
    if std::env::var_os("EVERBLOOM_BLESS").is_some() {
        std::fs::write(&path, &lines).expect("goals written");
    }
    let known = std::fs::read_to_string(&path).expect("goals");
    for (found, known) in lines.lines().zip(known.lines()) {
        assert_eq!(found, known, "made anew with EVERBLOOM_BLESS=1");
    }
    assert_eq!(known.lines().count(), GOALS);
}

#[test]
fn a_question_about_a_goal_alone_answers_as_its_plan() {
    for typed in all() {
        let mut question = Question::among(KINDS, typed.goal());
        (question.window, question.best_only, question.quick) = (typed.window(), true, true);
        let answered = question.answer().ok().map(|found| found.best.plan.spec.to_string());
        let planned = typed.plan(&typed.goal()).ok().map(|plan| plan.spec.to_string());
        assert_eq!(answered, planned, "{}", typed.line());
    }
}
