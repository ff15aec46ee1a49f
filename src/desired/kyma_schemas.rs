//! The schemas of Kyma's ModuleReleaseMeta and ModuleTemplate (`operator.kyma-project.io/v1beta2`), field for field.

use super::schema::{ANY_TEXT, Field, SOME_TEXT, Schema, optional, required};
use super::texts::{
    CHANNEL_NAME, DATE, MODULE_NAME, OCM_COMPONENT_NAME, SEMANTIC_VERSION, TEMPLATE_CHANNEL, URI,
    VERSION,
};

/// ModuleReleaseMeta.
pub(super) static MODULE_RELEASE_META: Schema = Schema::Record(&[
    API_VERSION,
    required!("kind", Schema::OneOf(&["ModuleReleaseMeta"]), "the kind"),
    METADATA,
    required!(
        "spec",
        Schema::Record(RELEASE_META_SPEC),
        "what channels the module has"
    ),
    optional!("status", Schema::Mapping, "dropped"),
]);

/// The short form, `module-releases.yaml`.
pub(super) static MODULE_RELEASES: Schema = Schema::Record(&[
    optional!(
        "targetLandscapes",
        Schema::List(&Schema::Text(&super::texts::LANDSCAPE)),
        "the landscapes that get this mapping; all where it is missing",
    ),
    OCM_NAME,
    CHANNELS,
    MANDATORY,
    VERSIONS,
]);

/// ModuleTemplate.
pub(super) static MODULE_TEMPLATE: Schema = Schema::Record(&[
    API_VERSION,
    required!("kind", Schema::OneOf(&["ModuleTemplate"]), "the kind"),
    METADATA,
    required!(
        "spec",
        Schema::Record(TEMPLATE_SPEC),
        "what the version consists of"
    ),
    optional!("status", Schema::Mapping, "dropped"),
]);

const API_VERSION: Field = required!(
    "apiVersion",
    Schema::OneOf(&["operator.kyma-project.io/v1beta2"]),
    "group and version",
);
const METADATA: Field = required!("metadata", Schema::Mapping, "name, labels and annotations");

const OCM_NAME: Field = optional!(
    "ocmComponentName",
    Schema::Text(&OCM_COMPONENT_NAME),
    "the OCM component that the module's versions are published under",
);
const CHANNELS: Field = optional!(
    "channels",
    Schema::List(&Schema::Record(&[
        required!("channel", Schema::Text(&CHANNEL_NAME), "the channel's name"),
        required!(
            "version",
            Schema::Text(&VERSION),
            "the version that the channel offers"
        ),
    ])),
    "where each channel points; instead of `mandatory`",
);
const MANDATORY: Field = optional!(
    "mandatory",
    Schema::Record(&[required!(
        "version",
        Schema::Text(&SEMANTIC_VERSION),
        "the version that every runtime gets",
    )]),
    "for a module that every runtime must have; instead of `channels`",
);
const VERSIONS: Field = optional!(
    "versions",
    Schema::List(&Schema::Record(&[
        required!("version", Schema::Text(&SEMANTIC_VERSION), "the version"),
        optional!(
            "deprecationDate",
            Schema::Text(&DATE),
            "the day after which no channel may newly point at it"
        ),
        optional!(
            "deprecationMessage",
            Schema::Text(&ANY_TEXT),
            "why, and what to use instead"
        ),
    ])),
    "what is to be said about single versions",
);

const RELEASE_META_SPEC: &[Field] = &[
    required!(
        "moduleName",
        Schema::Text(&MODULE_NAME),
        "the module's name, as its folder has it"
    ),
    OCM_NAME,
    CHANNELS,
    MANDATORY,
    VERSIONS,
    optional!(
        "beta",
        Schema::Boolean,
        "deprecated; the ModuleTemplate's label decides"
    ),
    optional!(
        "internal",
        Schema::Boolean,
        "deprecated; the ModuleTemplate's label decides"
    ),
    optional!(
        "kymaSelector",
        Schema::Record(LABEL_SELECTOR),
        "which runtimes may have a restricted module"
    ),
];

const LABEL_SELECTOR: &[Field] = &[
    optional!(
        "matchLabels",
        Schema::Map(&ANY_TEXT, &Schema::Text(&ANY_TEXT)),
        "labels with their values",
    ),
    optional!(
        "matchExpressions",
        Schema::List(&Schema::Record(&[
            required!("key", Schema::Text(&SOME_TEXT), "the label"),
            required!(
                "operator",
                Schema::OneOf(&["In", "NotIn", "Exists", "DoesNotExist"]),
                "how it is compared",
            ),
            optional!(
                "values",
                Schema::List(&Schema::Text(&ANY_TEXT)),
                "what it is compared with"
            ),
        ])),
        "rules about labels",
    ),
];

const TEMPLATE_SPEC: &[Field] = &[
    optional!(
        "channel",
        Schema::Text(&TEMPLATE_CHANNEL),
        "deprecated; the ModuleReleaseMeta has the channels"
    ),
    optional!(
        "version",
        Schema::Text(&VERSION),
        "the version, as its folder has it"
    ),
    optional!(
        "moduleName",
        Schema::Text(&MODULE_NAME),
        "the module's name, as its folder has it"
    ),
    optional!(
        "mandatory",
        Schema::Boolean,
        "for modules that every runtime must have"
    ),
    optional!(
        "data",
        Schema::Mapping,
        "the module's default configuration resource"
    ),
    required!(
        "descriptor",
        Schema::Mapping,
        "the OCM descriptor, no longer used; write `{}`"
    ),
    optional!(
        "customStateCheck",
        Schema::List(&Schema::Record(&[
            required!("jsonPath", Schema::Text(&ANY_TEXT), "where to look"),
            required!("value", Schema::Text(&ANY_TEXT), "what to find"),
            required!(
                "mappedState",
                Schema::OneOf(&[
                    "Processing",
                    "Deleting",
                    "Ready",
                    "Error",
                    "",
                    "Warning",
                    "Unmanaged"
                ]),
                "the state that it means",
            ),
        ])),
        "deprecated",
    ),
    optional!(
        "resources",
        Schema::List(&Schema::Record(&[
            required!(
                "name",
                Schema::Text(&ANY_TEXT),
                "for instance `rawManifest`"
            ),
            required!("link", Schema::Text(&URI), "where it is"),
        ])),
        "links to what belongs to the version",
    ),
    optional!(
        "info",
        Schema::Record(&[
            required!(
                "repository",
                Schema::Text(&ANY_TEXT),
                "the source code's address"
            ),
            required!(
                "documentation",
                Schema::Text(&ANY_TEXT),
                "the documentation's address"
            ),
            optional!(
                "icons",
                Schema::List(&Schema::Record(&[
                    required!("name", Schema::Text(&ANY_TEXT), "the icon's name"),
                    required!("link", Schema::Text(&ANY_TEXT), "the icon's address"),
                ])),
                "icons for display",
            ),
        ]),
        "for display",
    ),
    optional!(
        "associatedResources",
        Schema::List(&Schema::Record(GROUP_VERSION_KIND)),
        "kinds that the module brings; for information",
    ),
    optional!(
        "manager",
        Schema::Record(&[
            GROUP_VERSION_KIND[0],
            GROUP_VERSION_KIND[1],
            GROUP_VERSION_KIND[2],
            required!("name", Schema::Text(&ANY_TEXT), "the workload's name"),
            optional!(
                "namespace",
                Schema::Text(&ANY_TEXT),
                "the workload's namespace"
            ),
        ]),
        "the workload whose state is the module's",
    ),
    optional!(
        "requiresDowntime",
        Schema::Boolean,
        "whether an upgrade waits for a maintenance window"
    ),
];

const GROUP_VERSION_KIND: &[Field] = &[
    required!("group", Schema::Text(&ANY_TEXT), "the API group"),
    required!("version", Schema::Text(&ANY_TEXT), "the API version"),
    required!("kind", Schema::Text(&ANY_TEXT), "the kind"),
];
