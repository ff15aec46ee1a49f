//! The schema of one step: what every step may have, and one field for each kind of step.

use super::schema::{LOOKUPS, RETRY};
use super::texts::{EXPRESSION, IDENTIFIER, MEMBER, METHOD, SELECTOR, SPAN, STEP_ID};
use crate::desired::schema::{ANY_TEXT, Field, SOME_TEXT, Schema, optional, required};

/// One step. That it has exactly one of the kinds is a rule of its own.
pub(super) static STEP: Schema = Schema::Record(&[
    required!(
        "id",
        Schema::Text(&STEP_ID),
        "its name, unique in the migration"
    ),
    optional!(
        "when",
        Schema::Text(&EXPRESSION),
        "CEL; the step is left out where it is false"
    ),
    optional!(
        "forEach",
        Schema::Record(&[
            required!(
                "as",
                Schema::Text(&IDENTIFIER),
                "the name of the element in expressions, and for `ref`"
            ),
            required!("in", Schema::Text(&EXPRESSION), "CEL that gives the list"),
        ]),
        "does the step once for each element of a list",
    ),
    optional!("patch", Schema::Record(PATCH), "changes one object"),
    optional!(
        "apply",
        Schema::Record(&[required!("manifest", Schema::Mapping, "the object")]),
        "applies one object on the server's side, without force",
    ),
    optional!("delete", Schema::Record(DELETE), "deletes objects"),
    optional!(
        "wait",
        Schema::Record(WAIT),
        "waits until the cluster is as it should be"
    ),
    optional!(
        "job",
        Schema::Record(JOB),
        "runs one container to its end as a Kubernetes Job"
    ),
    optional!(
        "http",
        Schema::Record(HTTP),
        "sends one HTTP request, to a host that fairway.yaml allows"
    ),
    optional!(
        "rewrite",
        Schema::Record(REWRITE),
        "writes every object of a kind unchanged, so that it is stored in the present version"
    ),
    optional!(
        "builtin",
        Schema::Record(&[
            required!(
                "name",
                Schema::OneOf(crate::model::migration::BUILTINS),
                "which helper"
            ),
            optional!("with", WITH, "what it is given"),
        ]),
        "calls a helper of Fairway",
    ),
    optional!(
        "compiled",
        Schema::Record(&[
            required!(
                "name",
                Schema::OneOf(crate::model::migration::COMPILED),
                "the name under which it is registered"
            ),
            optional!("with", WITH, "what it is given"),
        ]),
        "runs logic that is compiled into Fairway",
    ),
    optional!(
        "outputs",
        Schema::Map(&MEMBER, &Schema::Text(&EXPRESSION)),
        "CEL over `result`, for later steps as `steps[\"ID\"].outputs.NAME`"
    ),
    optional!(
        "retry",
        RETRY,
        "how it is tried again; as the policy says where it is missing"
    ),
    optional!(
        "attemptTimeout",
        Schema::Text(&SPAN),
        "active time for one attempt; as the policy says where it is missing"
    ),
    optional!(
        "onUnknown",
        Schema::OneOf(&["Retry", "Fail", "Manual"]),
        "what is done when nobody knows whether an attempt took effect"
    ),
]);

const WITH: Schema = Schema::Map(&SOME_TEXT, &Schema::Any);

const REFERENCE: Field = optional!(
    "ref",
    Schema::Text(&MEMBER),
    "the lookup, or the element of `forEach`, that is meant"
);

const PATCH: &[Field] = &[
    REFERENCE,
    optional!(
        "object",
        Schema::Record(&[
            required!("apiVersion", Schema::Text(&SOME_TEXT), "group and version"),
            required!("kind", Schema::Text(&SOME_TEXT), "the kind"),
            optional!("namespace", Schema::Text(&SOME_TEXT), "the namespace"),
            required!("name", Schema::Text(&SOME_TEXT), "the name"),
        ]),
        "the object, in place of `ref`",
    ),
    optional!(
        "type",
        Schema::OneOf(&["merge", "json", "strategic"]),
        "the form of the patch; merge where it is missing"
    ),
    optional!(
        "subresource",
        Schema::Text(&SOME_TEXT),
        "`status` or another subresource"
    ),
    required!(
        "body",
        Schema::Any,
        "the patch; for json a list of operations"
    ),
];

const DELETE: &[Field] = &[
    REFERENCE,
    optional!(
        "select",
        Schema::Record(&[
            required!("apiVersion", Schema::Text(&SOME_TEXT), "group and version"),
            required!("kind", Schema::Text(&SOME_TEXT), "the kind"),
            optional!("namespace", Schema::Text(&SOME_TEXT), "the namespace"),
            optional!(
                "allNamespaces",
                Schema::Boolean,
                "whether objects of all namespaces are meant"
            ),
            optional!(
                "names",
                Schema::List(&Schema::Text(&SOME_TEXT)),
                "the names"
            ),
            optional!(
                "selector",
                Schema::Text(&SELECTOR),
                "labels, as kubectl writes them"
            ),
        ]),
        "the objects, in place of `ref`",
    ),
    optional!(
        "propagation",
        Schema::OneOf(&["Background", "Foreground", "Orphan"]),
        "what happens to what they own"
    ),
    optional!(
        "waitGone",
        Schema::Boolean,
        "whether the step ends only when they are gone"
    ),
];

const WAIT: &[Field] = &[
    optional!("lookups", LOOKUPS, "lookups beside those of the migration"),
    required!(
        "until",
        Schema::Text(&EXPRESSION),
        "CEL; true when waiting is over"
    ),
    optional!(
        "failWhen",
        Schema::Text(&EXPRESSION),
        "CEL; true when waiting is in vain, which fails the run"
    ),
];

const SECRET_KEY: Schema = Schema::Record(&[
    optional!("namespace", Schema::Text(&SOME_TEXT), "the namespace"),
    required!("name", Schema::Text(&SOME_TEXT), "the name"),
    required!("key", Schema::Text(&SOME_TEXT), "the key"),
]);

const JOB: &[Field] = &[
    required!("namespace", Schema::Text(&SOME_TEXT), "where it runs"),
    required!(
        "image",
        Schema::Text(&SOME_TEXT),
        "the image, with its digest"
    ),
    optional!(
        "command",
        Schema::List(&Schema::Text(&ANY_TEXT)),
        "the program, which is no shell; the image's where it is missing"
    ),
    optional!(
        "args",
        Schema::List(&Schema::Text(&ANY_TEXT)),
        "its arguments"
    ),
    optional!(
        "env",
        Schema::Map(&SOME_TEXT, &Schema::Text(&ANY_TEXT)),
        "its environment"
    ),
    optional!(
        "envFromSecrets",
        Schema::Map(&SOME_TEXT, &SECRET_KEY),
        "environment from Secrets"
    ),
    optional!(
        "serviceAccountName",
        Schema::Text(&SOME_TEXT),
        "the account that it acts as; without it, it gets no token"
    ),
    optional!(
        "resources",
        Schema::Mapping,
        "requests and limits, as a container has them"
    ),
];

const HTTP: &[Field] = &[
    required!("method", Schema::Text(&METHOD), "the method"),
    required!("url", Schema::Text(&SOME_TEXT), "the address"),
    optional!(
        "headers",
        Schema::Map(&SOME_TEXT, &Schema::Text(&ANY_TEXT)),
        "headers"
    ),
    optional!("body", Schema::Any, "the body, sent as JSON"),
    optional!(
        "idempotencyKey",
        Schema::Text(&SOME_TEXT),
        "sent as Idempotency-Key, the same with each attempt"
    ),
    optional!(
        "expect",
        Schema::List(&Schema::Count),
        "statuses that are a success; 200 to 299 where it is missing"
    ),
    optional!(
        "retryOn",
        Schema::List(&Schema::Count),
        "statuses after which it is tried again, beside 408, 425, 429 and 500 to 599"
    ),
    optional!(
        "bearerToken",
        SECRET_KEY,
        "a token from a Secret, sent as Authorization: Bearer"
    ),
];

const REWRITE: &[Field] = &[
    required!("apiVersion", Schema::Text(&SOME_TEXT), "group and version"),
    required!("kind", Schema::Text(&SOME_TEXT), "the kind"),
    optional!(
        "namespace",
        Schema::Text(&SOME_TEXT),
        "the namespace; all of them where it is missing"
    ),
    optional!("pageSize", Schema::Count, "objects of one page"),
];
