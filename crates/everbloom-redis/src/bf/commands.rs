//! The table of commands, in our own words.

use super::{adding, asking, moving};
use crate::command::{Argument, Command, Role, Takes, key};
use crate::server::Entry;

const ITEM: Argument = Argument::new(c"item", Takes::Text);
const ITEMS: Argument = ITEM.multiple();
const ERROR_RATE: Argument = Argument::new(c"error_rate", Takes::Double);
const CAPACITY: Argument = Argument::new(c"capacity", Takes::Integer);
const EXPANSION: Argument = Argument::new(c"expansion", Takes::Integer).after(c"EXPANSION").optional();
const NONSCALING: Argument = Argument::word(c"nonscaling", c"NONSCALING").optional();
const ITERATOR: Argument = Argument::new(c"iterator", Takes::Integer);

/// What commands share that ask one key.
const ASK: Command = Command {
    name: c"",
    flags: c"readonly fast",
    categories: c"bloom read fast",
    arity: 3,
    keys: &[key(Role::Asked)],
    summary: c"",
    complexity: c"O(1)",
    arguments: &[Argument::KEY, ITEM],
    entry: Entry::reading(asking::exists),
};

/// What commands share that add to one key.
const ADD: Command = Command { flags: c"write deny-oom", categories: c"bloom write", keys: &[key(Role::Added)], ..ASK };

/// Their names are in small letters, because the server prints them in its own errors as they are here.
pub(super) static COMMANDS: [Command; 11] = [
    Command {
        name: c"bf.reserve",
        flags: c"write deny-oom fast",
        categories: c"bloom write fast",
        arity: -4,
        summary: c"Creates an empty Bloom filter for a number of items at a rate of false positives.",
        complexity: c"O(N) where N is the bytes of the filter",
        arguments: &[Argument::KEY, ERROR_RATE, CAPACITY, EXPANSION, NONSCALING],
        entry: Entry::writing(adding::reserve, adding::repair),
        ..ADD
    },
    Command {
        name: c"bf.add",
        flags: c"write deny-oom fast",
        categories: c"bloom write fast",
        summary: c"Adds an item to a Bloom filter, which is created if it is not there, and says whether it is new.",
        complexity: c"O(K) where K is the bits of an item",
        entry: Entry::writing(adding::add, adding::repair),
        ..ADD
    },
    Command {
        name: c"bf.madd",
        arity: -3,
        summary: c"Adds items to a Bloom filter, which is created if it is not there, and says which are new.",
        complexity: c"O(N*K) where N is the number of items and K the bits of an item",
        arguments: &[Argument::KEY, ITEMS],
        entry: Entry::writing(adding::add_many, adding::repair),
        ..ADD
    },
    Command {
        name: c"bf.insert",
        arity: -4,
        summary: c"Adds items to a Bloom filter and says which are new; says how to create it if it is not there.",
        complexity: c"O(N*K) where N is the number of items and K the bits of an item",
        arguments: &[
            Argument::KEY,
            CAPACITY.after(c"CAPACITY").optional(),
            ERROR_RATE.after(c"ERROR").optional(),
            EXPANSION,
            Argument::word(c"nocreate", c"NOCREATE").optional(),
            NONSCALING,
            ITEMS.after(c"ITEMS"),
        ],
        entry: Entry::writing(adding::insert, adding::repair),
        ..ADD
    },
    Command {
        name: c"bf.exists",
        summary: c"Says whether an item seems to be in a Bloom filter.",
        complexity: c"O(K) where K is the bits of an item",
        entry: Entry::reading(asking::exists),
        ..ASK
    },
    Command {
        name: c"bf.mexists",
        arity: -3,
        summary: c"Says which items seem to be in a Bloom filter.",
        complexity: c"O(N*K) where N is the number of items and K the bits of an item",
        arguments: &[Argument::KEY, ITEMS],
        entry: Entry::reading(asking::exist),
        ..ASK
    },
    Command {
        name: c"bf.info",
        arity: -2,
        summary: c"Describes a Bloom filter.",
        arguments: &[
            Argument::KEY,
            Argument::new(
                c"detail",
                Takes::OneOf(&[
                    Argument::word(c"capacity", c"CAPACITY"),
                    Argument::word(c"size", c"SIZE"),
                    Argument::word(c"filters", c"FILTERS"),
                    Argument::word(c"items", c"ITEMS"),
                    Argument::word(c"expansion", c"EXPANSION"),
                ]),
            )
            .optional(),
        ],
        entry: Entry::reading(asking::info),
        ..ASK
    },
    Command {
        name: c"bf.card",
        arity: 2,
        summary: c"Says how many items were new when they were added to a Bloom filter.",
        arguments: &[Argument::KEY],
        entry: Entry::reading(asking::count),
        ..ASK
    },
    Command {
        name: c"bf.scandump",
        summary: c"Gives a piece of a Bloom filter and the iterator of the next; begins at iterator 0.",
        complexity: c"O(N) where N is the bytes of the piece",
        arguments: &[Argument::KEY, ITERATOR],
        entry: Entry::reading(moving::dump),
        ..ASK
    },
    Command {
        name: c"bf.loadchunk",
        arity: 4,
        keys: &[key(Role::Changed)],
        summary: c"Puts a piece that BF.SCANDUMP gave into a Bloom filter.",
        complexity: c"O(N) where N is the bytes of the piece, or of the filter that the first one describes",
        arguments: &[Argument::KEY, ITERATOR, Argument::new(c"data", Takes::Text)],
        entry: Entry::writing(moving::load, adding::repair),
        ..ADD
    },
    Command {
        name: c"bf.debug",
        arity: 2,
        summary: c"Describes each stage of a Bloom filter.",
        complexity: c"O(N) where N is the number of stages",
        arguments: &[Argument::KEY],
        entry: Entry::reading(asking::debug),
        ..ASK
    },
];
