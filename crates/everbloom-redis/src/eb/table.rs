//! The commands of `EB.*`. Their names are in small letters, as a server shows its own; users write them as they like.

use super::{adding, asking, changing, reserve};
use crate::command::{Argument, Command, Keys, Role, Takes, key};
use crate::server::Entry;

const KEY: Argument = Argument::KEY;
const SPEC: Argument = Argument::new(c"spec", Takes::Text);
const ITEM: Argument = Argument::new(c"item", Takes::Text);
const ITEMS: Argument = ITEM.multiple();
const HASHES: Argument = Argument::new(c"hashes", Takes::Text);
const MEMORY: Argument = Argument::new(c"size", Takes::Text).after(c"MEMORY").optional();
const FPR: Argument = Argument::new(c"rate", Takes::Text).after(c"FPR").optional();
const EXPECT: Argument = Argument::new(c"keys", Takes::Text).after(c"EXPECT").optional();
const SEED: Argument = Argument::new(c"seed", Takes::Integer).after(c"SEED").optional();
const AUDIT: Argument = Argument::new(
    c"audit",
    Takes::Block(&[
        Argument::word(c"audit", c"AUDIT"),
        Argument::new(c"size", Takes::Text).optional(),
        Argument::new(c"seed", Takes::Integer).optional(),
    ]),
)
.optional();
const NX: Argument = Argument::word(c"nx", c"NX").optional();
const TIME: Argument = Argument::new(
    c"time",
    Takes::OneOf(&[
        Argument::new(c"every", Takes::Text).after(c"EVERY"),
        Argument::new(c"window", Takes::Text).after(c"WINDOW"),
    ]),
)
.optional();
const SCALE: Argument = Argument::new(
    c"importances",
    Takes::Block(&[
        Argument::new(c"max", Takes::Double).after(c"IMPORTANCE"),
        Argument::word(c"log", c"LOG").optional(),
    ]),
)
.optional();
const IMPORTANCE: Argument = Argument::new(c"importance", Takes::Double).after(c"IMPORTANCE").optional();
const IMPORTANCES: Argument = Argument::new(c"importances", Takes::Text).after(c"IMPORTANCES").optional();
const TOKEN: Argument = Argument::new(
    c"token",
    Takes::Block(&[Argument::new(c"client", Takes::Text).after(c"TOKEN"), Argument::new(c"sequence", Takes::Text)]),
)
.optional();
const COUNTS: Argument = Argument::new(
    c"counts",
    Takes::Block(&[
        Argument::new(c"observed", Takes::Integer).after(c"COUNTS"),
        Argument::new(c"distinct", Takes::Integer),
    ]),
)
.optional();

/// What most commands share.
const READ: Command = Command {
    name: c"",
    flags: c"readonly fast",
    categories: c"read fast everbloom",
    arity: 0,
    keys: &[key(Role::Asked)],
    summary: c"",
    complexity: c"O(1)",
    arguments: &[],
    entry: Entry::reading(asking::exists),
};

const SLOW_READ: Command = Command { flags: c"readonly", categories: c"read slow everbloom", ..READ };

const ADD: Command = Command {
    flags: c"write deny-oom",
    categories: c"write slow everbloom",
    keys: &[key(Role::Added)],
    complexity: c"O(N) with N items",
    ..READ
};

const DELETE: Command =
    Command { flags: c"write", categories: c"write slow everbloom", keys: &[key(Role::Deleted)], ..READ };

/// All of them.
pub(super) static COMMANDS: &[Command] = &[
    Command {
        name: c"eb.reserve",
        arity: -3,
        summary: c"Plans a filter by its spec, or the best one for 'auto', and creates it.",
        complexity: c"O(N) with N bytes of memory",
        arguments: &[KEY, SPEC, MEMORY, FPR, EXPECT, SCALE, SEED, TIME, AUDIT, NX],
        entry: Entry::writing(reserve::reserve, changing::repair),
        ..ADD
    },
    Command {
        name: c"eb.add",
        flags: c"write deny-oom fast",
        categories: c"write fast everbloom",
        arity: -3,
        summary: c"Remembers an item; true if it is new.",
        complexity: c"O(1)",
        arguments: &[KEY, ITEM, IMPORTANCE, TOKEN],
        entry: Entry::writing(adding::add, changing::repair),
        ..ADD
    },
    Command {
        name: c"eb.madd",
        arity: -3,
        summary: c"Remembers items; true for each that is new.",
        arguments: &[KEY, ITEMS],
        entry: Entry::writing(adding::madd, changing::repair),
        ..ADD
    },
    Command {
        name: c"eb.insert",
        arity: -4,
        summary: c"Remembers items with an importance or a token for all of them; true for each that is new. TOKEN client 0 without items registers a client, TOKEN client END ends it.",
        arguments: &[KEY, IMPORTANCE, TOKEN, ITEMS.after(c"ITEMS")],
        entry: Entry::writing(adding::insert, changing::repair),
        ..ADD
    },
    Command {
        name: c"eb.iadd",
        // One less than it needs, so that it can say what is missing.
        arity: -3,
        summary: c"Remembers items, each with its importance; true for each that is new.",
        arguments: &[
            KEY,
            Argument::new(c"pairs", Takes::Block(&[ITEM, Argument::new(c"importance", Takes::Double)])).multiple(),
            TOKEN,
        ],
        entry: Entry::writing(adding::iadd, changing::repair),
        ..ADD
    },
    Command {
        name: c"eb.addhashes",
        arity: -3,
        summary: c"Remembers keys by their hashes, 16 bytes each; a bit for each, 1 if it is new. TOKEN makes a batch safe to send again: register with TOKEN client 0 and no hashes, then number batches 1, 2, 3, and leave with TOKEN client END; TOKENLOST says that the client must register anew.",
        arguments: &[KEY, HASHES, IMPORTANCE, IMPORTANCES, TOKEN],
        entry: Entry::writing(adding::add_hashes, changing::repair),
        ..ADD
    },
    Command {
        name: c"eb.exists",
        arity: 3,
        summary: c"Whether an item seems to have been here.",
        arguments: &[KEY, ITEM],
        entry: Entry::reading(asking::exists),
        ..READ
    },
    Command {
        name: c"eb.mexists",
        arity: -3,
        summary: c"Whether items seem to have been here.",
        complexity: c"O(N) with N items",
        arguments: &[KEY, ITEMS],
        entry: Entry::reading(asking::mexists),
        ..SLOW_READ
    },
    Command {
        name: c"eb.existshashes",
        arity: 3,
        summary: c"Whether keys seem to have been here, by their hashes, 16 bytes each; a bit for each.",
        complexity: c"O(N) with N hashes",
        arguments: &[KEY, HASHES],
        entry: Entry::reading(asking::exists_hashes),
        ..SLOW_READ
    },
    Command {
        name: c"eb.count",
        arity: -3,
        summary: c"How often items came, for filters that count.",
        complexity: c"O(N) with N items",
        arguments: &[KEY, ITEMS],
        entry: Entry::reading(asking::counts),
        ..SLOW_READ
    },
    Command {
        name: c"eb.remove",
        arity: -3,
        summary: c"Takes items out that were added; true for each that was there.",
        complexity: c"O(N) with N items",
        arguments: &[KEY, ITEMS],
        entry: Entry::writing(changing::remove, changing::repair),
        ..DELETE
    },
    Command {
        name: c"eb.advance",
        flags: c"write fast",
        categories: c"write fast everbloom",
        arity: -2,
        summary: c"Begins new generations of a filter with a window: what is too old is forgotten.",
        complexity: c"O(N) with N bytes of a generation",
        arguments: &[KEY, Argument::new(c"generations", Takes::Integer).optional()],
        entry: Entry::writing(changing::advance, changing::repair),
        ..DELETE
    },
    Command {
        name: c"eb.clear",
        arity: 2,
        summary: c"Forgets everything, as if just reserved.",
        complexity: c"O(N) with N bytes of memory",
        arguments: &[KEY],
        entry: Entry::writing(changing::clear, changing::repair),
        ..DELETE
    },
    Command {
        name: c"eb.merge",
        arity: -4,
        keys: &[Keys { first: 2, many: false, role: Role::Changed }, Keys { first: 3, many: true, role: Role::Asked }],
        summary: c"Makes a filter the union or intersection of itself and others of the same spec and seed.",
        complexity: c"O(N) with N bytes of all filters",
        arguments: &[
            Argument::new(
                c"how",
                Takes::OneOf(&[Argument::word(c"union", c"UNION"), Argument::word(c"intersect", c"INTERSECT")]),
            ),
            Argument::new(c"destination", Takes::Key(0)),
            Argument::new(c"source", Takes::Key(1)).multiple(),
        ],
        entry: Entry::writing(changing::merge, changing::repair_second),
        ..ADD
    },
    Command {
        name: c"eb.info",
        arity: 2,
        summary: c"What a filter is and promises, and what came.",
        arguments: &[KEY],
        entry: Entry::reading(asking::info),
        ..READ
    },
    Command {
        name: c"eb.status",
        arity: 2,
        summary: c"How full a filter is, and the rate to expect of it now.",
        complexity: c"O(N) with N bytes of memory",
        arguments: &[KEY],
        entry: Entry::reading(asking::status),
        ..SLOW_READ
    },
    Command {
        name: c"eb.plan",
        arity: -2,
        keys: &[],
        summary: c"What EB.RESERVE would create, without creating it.",
        arguments: &[SPEC, MEMORY, FPR, EXPECT, SCALE, TIME],
        entry: Entry::reading(reserve::plan),
        ..SLOW_READ
    },
    Command {
        name: c"eb.dump",
        arity: -2,
        summary: c"A filter as an .ebf file has it, for EB.LOAD and the command line.",
        complexity: c"O(N) with N bytes of memory",
        arguments: &[KEY, Argument::word(c"compressed", c"COMPRESSED").optional()],
        entry: Entry::reading(asking::dump),
        ..SLOW_READ
    },
    Command {
        name: c"eb.load",
        categories: c"write slow dangerous everbloom",
        arity: -3,
        keys: &[key(Role::Changed)],
        summary: c"Creates a filter from the bytes of an .ebf file.",
        complexity: c"O(N) with N bytes",
        arguments: &[
            KEY,
            Argument::new(c"bytes", Takes::Text),
            Argument::word(c"replace", c"REPLACE").optional(),
            COUNTS,
            SCALE,
            Argument::new(c"every", Takes::Text).after(c"EVERY").optional(),
        ],
        entry: Entry::writing(changing::load, changing::repair),
        ..ADD
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_table_says_of_every_command_what_a_server_needs() {
        let names: HashSet<_> = COMMANDS.iter().map(|command| command.name).collect();
        assert_eq!(names.len(), COMMANDS.len(), "a name twice");
        for command in COMMANDS {
            let (name, flags) = (command.name.to_str().expect("text"), command.flags.to_str().expect("text"));
            assert!(name.starts_with("eb.") && !command.summary.is_empty(), "{name}");
            let writes = flags.split(' ').any(|flag| flag == "write");
            let reads = flags.split(' ').any(|flag| flag == "readonly");
            assert!(writes != reads, "{name}: {flags}");
            let changes = command.keys.iter().any(|keys| !matches!(keys.role, Role::Asked));
            assert_eq!(writes, changes, "{name}: its flags and its keys differ");
            // Words that must be there: the name and what is not optional.
            let parts = |argument: &Argument| match argument.takes {
                Takes::Block(parts) => parts.len(),
                _ => 1,
            };
            let tokens = |argument: &Argument| {
                usize::from(argument.token.is_some() && !matches!(argument.takes, Takes::Nothing))
            };
            let needed = command.arguments.iter().filter(|argument| !argument.is_optional);
            let words = 1 + needed.map(|argument| parts(argument) + tokens(argument)).sum::<usize>();
            let arity = command.arity.unsigned_abs() as usize;
            assert!(arity == words || name == "eb.iadd" && arity == words - 1, "{name}: {arity} is not {words}");
            let is_open = command.arguments.iter().any(|argument| argument.is_optional || argument.is_multiple);
            assert_eq!(command.arity < 0, is_open, "{name}: its arity and its arguments differ");
        }
    }
}
