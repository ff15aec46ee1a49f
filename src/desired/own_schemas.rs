//! The schemas of our definition kinds, which live in git only: Repository, Component and ReleaseGraph. That of Migration stands in `migrations`.

use super::kyma_schemas::{MODULE_RELEASE_META, MODULE_RELEASES, MODULE_TEMPLATE};
use super::schema::{Field, SOME_TEXT, Schema, optional, required};
use super::texts::{
    CHANNEL_NAME, COMPONENT, DURATION, HOST, LANDSCAPE, MODULE_NAME, SEMANTIC_VERSION, SUFFIX,
};

/// Returns every published schema as JSON Schema, by the name of its file without `.json`.
pub fn json_schemas() -> Vec<(&'static str, serde_json::Value)> {
    [
        (
            "repository",
            "Settings of a repository: fairway.yaml",
            &REPOSITORY,
        ),
        (
            "component",
            "A component: component.yaml",
            &COMPONENT_SETTINGS,
        ),
        ("migration", "A migration", &super::migrations::MIGRATION),
        (
            "release-graph",
            "Version steps of a module: release-graph.yaml",
            &RELEASE_GRAPH,
        ),
        (
            "module-releases",
            "Channels of a module in short: module-releases.yaml",
            &MODULE_RELEASES,
        ),
        (
            "module-release-meta",
            "Channels of a module: module-release-meta.yaml",
            &MODULE_RELEASE_META,
        ),
        (
            "module-template",
            "A version of a module: module-template.yaml",
            &MODULE_TEMPLATE,
        ),
    ]
    .into_iter()
    .map(|(name, title, schema)| {
        let mut schema = schema.to_json_schema();
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        schema["title"] = title.into();
        (name, schema)
    })
    .collect()
}

const API_VERSION: Field = required!(
    "apiVersion",
    Schema::OneOf(&["fairway.dev/v1alpha1"]),
    "group and version",
);

const ON_REMOVE: Field = optional!(
    "onRemove",
    Schema::OneOf(&["Undo", "Keep"]),
    "what becomes of what its migrations have changed when the folder is removed: Keep (default) or Undo",
);

/// `fairway.yaml`.
pub(super) static REPOSITORY: Schema = Schema::Record(&[
    API_VERSION,
    required!("kind", Schema::OneOf(&["Repository"]), "the kind"),
    optional!(
        "release",
        Schema::Text(&SEMANTIC_VERSION),
        "the release of the repository as a whole"
    ),
    optional!(
        "channels",
        Schema::Map(
            &CHANNEL_NAME,
            &Schema::Record(&[optional!(
                "suffixes",
                Schema::List(&Schema::Text(&SUFFIX)),
                "suffixes of pre-releases that the channel may offer; none where it is missing",
            )]),
        ),
        "the channels that modules may use; any where it is missing",
    ),
    optional!(
        "upgrades",
        Schema::Record(&[optional!(
            "policy",
            Schema::OneOf(&["Linear", "Direct"]),
            "Linear (through every minor) or Direct (any distance upwards)",
        )]),
        "how channels may move",
    ),
    optional!(
        "landscapes",
        Schema::List(&Schema::Text(&LANDSCAPE)),
        "the landscapes that modules may name; any where it is missing",
    ),
    optional!(
        "removals",
        Schema::List(&Schema::Record(REMOVAL)),
        "removals that are meant, so that nobody has to approve them"
    ),
    optional!(
        "defaultModules",
        Schema::List(&Schema::Text(&MODULE_NAME)),
        "modules that a new runtime starts with"
    ),
    optional!(
        "httpHosts",
        Schema::List(&Schema::Text(&HOST)),
        "hosts that `http` steps of migrations may call; none where it is missing"
    ),
]);

const REMOVAL: &[Field] = &[
    optional!(
        "component",
        Schema::Text(&COMPONENT),
        "a whole component or module"
    ),
    optional!(
        "object",
        Schema::Record(&[
            required!("apiVersion", Schema::Text(&SOME_TEXT), "group and version"),
            required!("kind", Schema::Text(&SOME_TEXT), "the kind"),
            optional!(
                "namespace",
                Schema::Text(&SOME_TEXT),
                "the namespace, where it has one"
            ),
            required!("name", Schema::Text(&SOME_TEXT), "the name"),
        ]),
        "one object",
    ),
];

/// `component.yaml`.
pub(super) static COMPONENT_SETTINGS: Schema = Schema::Record(&[
    API_VERSION,
    required!("kind", Schema::OneOf(&["Component"]), "the kind"),
    optional!(
        "version",
        Schema::Text(&SEMANTIC_VERSION),
        "the version of what is in the folder"
    ),
    optional!(
        "dependsOn",
        Schema::List(&Schema::Text(&COMPONENT)),
        "components that must be healthy before this one is touched",
    ),
    optional!(
        "healthTimeout",
        Schema::Text(&DURATION),
        "how long its objects may take to become healthy"
    ),
    ON_REMOVE,
]);

/// `component.yaml` of a module: versions, order and health are its channels' and its own.
pub(super) static MODULE_SETTINGS: Schema = Schema::Record(&[
    API_VERSION,
    required!("kind", Schema::OneOf(&["Component"]), "the kind"),
    ON_REMOVE,
]);

/// `release-graph.yaml`.
pub(super) static RELEASE_GRAPH: Schema = Schema::Record(&[
    API_VERSION,
    required!("kind", Schema::OneOf(&["ReleaseGraph"]), "the kind"),
    optional!(
        "edges",
        Schema::List(&Schema::Record(&[
            required!(
                "from",
                Schema::Text(&SEMANTIC_VERSION),
                "the version that is left"
            ),
            required!(
                "to",
                Schema::Text(&SEMANTIC_VERSION),
                "the version that is reached; lower than `from` for a way back"
            ),
        ])),
        "steps that are allowed beside those of the upgrade policy",
    ),
    optional!(
        "yanked",
        Schema::List(&Schema::Record(&[
            required!(
                "version",
                Schema::Text(&SEMANTIC_VERSION),
                "the version that no channel may go to; any way out of it is allowed"
            ),
            optional!("reason", Schema::Text(&SOME_TEXT), "why"),
        ])),
        "versions that must not be used any more",
    ),
]);
