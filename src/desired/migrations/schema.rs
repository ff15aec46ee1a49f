//! The schema of a Migration, as it stands in git.
//!
//! The types of [`crate::model::migration`] say the same; a test holds both together. What one document alone cannot show,
//! or what a schema cannot say, is in the other files of this folder.

use super::step_schema::STEP;
use super::texts::{ACTION, EXPRESSION, MEMBER, NAME, SELECTOR, SPAN, STEP_ID};
use crate::desired::schema::{ANY_TEXT, Field, SOME_TEXT, Schema, TextRule, optional, required};
use crate::desired::texts::{COMPONENT, SEMANTIC_VERSION};

/// `kind: Migration`.
pub(in crate::desired) static MIGRATION: Schema = Schema::Record(&[
    required!(
        "apiVersion",
        Schema::OneOf(&["fairway.dev/v1alpha1"]),
        "group and version"
    ),
    required!("kind", Schema::OneOf(&["Migration"]), "the kind"),
    required!(
        "metadata",
        Schema::Record(&[required!(
            "name",
            Schema::Text(&NAME),
            "the name, unique in the repository"
        )]),
        "the name",
    ),
    required!("spec", Schema::Record(SPEC), "what it does"),
]);

const SPEC: &[Field] = &[
    optional!(
        "description",
        Schema::Text(&ANY_TEXT),
        "what this is for, in a sentence or two"
    ),
    required!(
        "owner",
        Schema::Text(&SOME_TEXT),
        "who is asked when it waits or fails"
    ),
    required!(
        "bind",
        Schema::Record(BIND),
        "what it belongs to, and when it runs"
    ),
    // Missing is told by a rule of its own, with the lines to write.
    optional!(
        "lifecycle",
        Schema::Record(LIFECYCLE),
        "from which release on it exists, and when it goes; must be there",
    ),
    optional!(
        "after",
        Schema::List(&Schema::Text(&NAME)),
        "migrations of the same hook that must have ended well before this one starts",
    ),
    optional!(
        "params",
        Schema::Map(&MEMBER, &Schema::Any),
        "constants, as `params.NAME` in expressions"
    ),
    optional!(
        "lookups",
        LOOKUPS,
        "what expressions may look at, as `objects.NAME`; nothing else of the cluster is read",
    ),
    required!(
        "guard",
        Schema::Record(GUARD),
        "whether there is anything to do, and whether it may be done"
    ),
    optional!(
        "steps",
        Schema::List(&STEP),
        "what is done, in this order; a retired migration has none"
    ),
    optional!(
        "undo",
        Schema::List(&STEP),
        "what takes the effects back when the component is removed, in this order",
    ),
    optional!(
        "policy",
        Schema::Record(POLICY),
        "how often, how long, and what a failure means"
    ),
    optional!(
        "tests",
        Schema::List(&Schema::Record(FIXTURE)),
        "cases that `fairway migration test` tries without a cluster",
    ),
];

const BIND: &[Field] = &[
    optional!(
        "scope",
        Schema::OneOf(&["component", "global"]),
        "global runs around the whole deploy; without it the folder decides",
    ),
    optional!(
        "components",
        Schema::List(&Schema::Text(&COMPONENT)),
        "the components; without it, the one in whose folder it stands",
    ),
    required!(
        "phase",
        Schema::OneOf(&["pre", "post"]),
        "before what it belongs to is applied, or after it is healthy"
    ),
    optional!(
        "on",
        Schema::List(&Schema::Text(&ACTION)),
        "on which deploys; both where it is missing"
    ),
];

const LIFECYCLE: &[Field] = &[
    optional!(
        "introducedIn",
        Schema::Text(&SEMANTIC_VERSION),
        "the first version that needs it"
    ),
    optional!(
        "removeIn",
        Schema::Text(&SEMANTIC_VERSION),
        "the first version that does not have it any more"
    ),
    optional!(
        "never",
        Schema::Text(&SOME_TEXT),
        "why it can never be removed"
    ),
];

/// Lookups by name, of a migration and of a `wait`.
pub(super) const LOOKUPS: Schema = Schema::Map(
    &MEMBER,
    &Schema::Record(&[
        required!("apiVersion", Schema::Text(&SOME_TEXT), "group and version"),
        required!("kind", Schema::Text(&SOME_TEXT), "the kind"),
        optional!(
            "namespace",
            Schema::Text(&SOME_TEXT),
            "the namespace; without it a list goes over all of them"
        ),
        optional!(
            "name",
            Schema::Text(&SOME_TEXT),
            "the name of the one object, which is null where it is not there"
        ),
        optional!("list", Schema::Boolean, "whether this is a list"),
        optional!(
            "selector",
            Schema::Text(&SELECTOR),
            "labels that select the objects of a list, as kubectl writes them"
        ),
        optional!(
            "limit",
            Schema::Count,
            "how many objects a list may have; more make the guard unknown"
        ),
        optional!(
            "missingKind",
            Schema::OneOf(&["Null", "Unknown"]),
            "what it means that the cluster does not serve the kind"
        ),
    ]),
);

const GUARD: &[Field] = &[
    required!(
        "needed",
        Schema::Text(&EXPRESSION),
        "CEL over the final state: true while there is work, and false once it is done"
    ),
    optional!(
        "requires",
        Schema::List(&Schema::Record(&[
            required!(
                "cel",
                Schema::Text(&EXPRESSION),
                "true when the migration may go on"
            ),
            required!(
                "message",
                Schema::Text(&SOME_TEXT),
                "what a person must do, in a sentence"
            ),
            optional!("runbook", Schema::Text(&SOME_TEXT), "where it is explained"),
            optional!(
                "onFalse",
                Schema::OneOf(&["Block", "Skip"]),
                "wait until it is true, or leave the migration out of this deploy"
            ),
        ])),
        "what must hold before the first change",
    ),
    optional!(
        "doneWhen",
        Schema::Text(&EXPRESSION),
        "the proof of success, where `!needed` is not it"
    ),
];

const POLICY: &[Field] = &[
    optional!(
        "run",
        Schema::OneOf(&["WhenNeeded", "OncePerCluster", "OncePerHop", "Always"]),
        "what decides whether it runs"
    ),
    optional!(
        "timeout",
        Schema::Text(&SPAN),
        "active time for the whole run"
    ),
    optional!(
        "attemptTimeout",
        Schema::Text(&SPAN),
        "active time for one attempt of one step"
    ),
    optional!("retry", RETRY, "how a step that failed is tried again"),
    optional!(
        "onFailure",
        Schema::OneOf(&["BlockComponent", "BlockDeploy", "Warn"]),
        "what a failure means for the deploy"
    ),
    optional!(
        "skipBudget",
        Schema::Text(&SPAN),
        "a guard that finds nothing to do and takes longer is reported"
    ),
    optional!(
        "cancelGrace",
        Schema::Text(&SPAN),
        "how long what runs may take to end once somebody cancels"
    ),
    optional!(
        "idempotencyKey",
        Schema::Text(&SOME_TEXT),
        "the key that makes an effect that cannot be observed happen once"
    ),
];

/// How something is tried again, of a policy and of a step.
pub(super) const RETRY: Schema = Schema::Record(&[
    optional!(
        "maxAttempts",
        Schema::Count,
        "attempts in all; without meaning for a wait"
    ),
    optional!(
        "interval",
        Schema::Text(&SPAN),
        "the delay after the first failure; for a wait, between looks"
    ),
    optional!(
        "factor",
        Schema::Number,
        "what each delay is multiplied by to give the next"
    ),
    optional!("maxInterval", Schema::Text(&SPAN), "the longest delay"),
    optional!(
        "jitter",
        Schema::Number,
        "how much of a delay is left to chance, from 0 to 1"
    ),
]);

const FIXTURE: &[Field] = &[
    required!("name", Schema::Text(&SOME_TEXT), "what the case is about"),
    optional!(
        "given",
        BY_LOOKUP,
        "what each lookup finds: an object, a list of objects, or null"
    ),
    optional!(
        "desired",
        BY_LOOKUP,
        "what this revision would apply, as `desired.NAME`"
    ),
    optional!(
        "params",
        BY_LOOKUP,
        "params that differ from the definition's"
    ),
    optional!(
        "components",
        Schema::List(&Schema::Record(&[
            required!(
                "name",
                Schema::Text(&COMPONENT_IN_FULL),
                "the component, as `components/NAME` or `modules/NAME`"
            ),
            optional!(
                "from",
                Schema::Text(&SOME_TEXT),
                "the version that it has, where it is known"
            ),
            optional!(
                "to",
                Schema::Text(&SOME_TEXT),
                "the version that it is to have"
            ),
            required!(
                "action",
                Schema::OneOf(&["install", "upgrade"]),
                "what is done with it"
            ),
        ])),
        "the components that the deploy processes, as `deploy.components`",
    ),
    optional!(
        "outcomes",
        Schema::Map(
            &STEP_ID,
            &Schema::Record(&[
                optional!(
                    "exitCode",
                    Schema::Count,
                    "what the program of a Job exits with"
                ),
                optional!(
                    "status",
                    Schema::Count,
                    "the status of the answer to a request"
                ),
                optional!("result", Schema::Any, "`result` for the outputs"),
                optional!(
                    "leaves",
                    BY_LOOKUP,
                    "what lookups find after it, merged into what is there; null where it is gone"
                ),
            ]),
        ),
        "what comes of Jobs, requests and waits, by the id of the step",
    ),
    required!("expect", Schema::Record(EXPECT), "what must come of it"),
];

const EXPECT: &[Field] = &[
    required!(
        "decision",
        Schema::OneOf(&["NotNeeded", "Run", "Block", "Skip", "Unknown"]),
        "the decision"
    ),
    optional!(
        "steps",
        Schema::List(&Schema::Text(&STEP_ID)),
        "the steps that have an effect, in their order"
    ),
    optional!(
        "then",
        BY_LOOKUP,
        "what lookups find afterwards; each value named here must be there"
    ),
];

const BY_LOOKUP: Schema = Schema::Map(&MEMBER, &Schema::Any);

static COMPONENT_IN_FULL: TextRule = TextRule {
    what: "a component in full",
    pattern: "^(modules|components)/[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    accepts: |text| text.contains('/') && (COMPONENT.accepts)(text),
    length: (1, 80),
    help: "`components/NAME` or `modules/NAME`",
};
