//! The mistakes. A comment `#! Qnnnn` at the end of a line is the finding that is expected there.

/// Edits of files of the example repo: file, text that occurs once, replacement.
pub const EDITS: &[(&str, &str, &str)] = &[
    ("data/services/billing/app.yml", "appCode: LBC-004", "appCod: LBC-004 #! Q3002"),
    ("data/services/billing/app.yml", "InProgress", "InProgres #! Q3004"),
    ("data/services/billing/app.yml", "/escalation/billing.yml", "/escalation/biling.yml #! Q2041"),
    ("data/services/billing/app.yml", "costCenter: \"077\"", "costCenter: 77 #! Q3001"),
    (
        "data/services/catalog/app.yml",
        "/products/shop/product.yml",
        "/products/shop/environments/stage.yml #! Q2043",
    ),
    (
        "data/services/catalog/app.yml",
        "- name: Catalog team\n  email: catalog@example.com",
        "- name: Catalog team #! Q3003",
    ),
    ("data/services/catalog/app.yml", "days_interval: 30", "days_interval: 0 #! Q3015"),
    (
        "data/services/catalog/app.yml",
        "description: the service\n    public: false",
        "description: the service\n    public: \"no\" #! Q3001",
    ),
    (
        "data/services/catalog/namespaces/catalog-stage.yml",
        "search-index.service.yaml",
        "search-index.servce.yaml #! Q2042",
    ),
    (
        "data/services/catalog/namespaces/catalog-stage.yml",
        "provider: vault-secret",
        "provider: vault-sekret #! Q3004",
    ),
    ("data/services/billing/namespaces/billing-prod.yml", "version: 12", "version: twelve #! Q3001"),
    (
        "data/services/billing/namespaces/billing-prod.yml",
        "managedRoles: true",
        "managedRoles: \"true\" #! Q3001",
    ),
    (
        "data/services/billing/namespaces/billing-prod.yml",
        "  - provider: rds\n    identifier: billing-archive",
        "  - provider: rds\n    identifier: billing-prod #! Q2046",
    ),
    ("data/services/billing/namespaces/billing-prod.yml", "loss_impact: high", "loss_impact: hgh #! Q3004"),
    (
        "data/services/billing/namespaces/billing-prod.yml",
        "$ref: /platform/limitranges/batch.yml",
        "$ref: platform/limitranges/batch.yml #! Q2041",
    ),
    ("data/services/billing/saas/billing.yml", "hash_length: 7", "hash_lenght: 7 #! Q3002"),
    ("data/services/billing/saas/billing.yml", "ref: main", "ref: Main #! Q3005"),
    ("data/aws/platform/account.yml", "uid: \"111111111111\"", "uid: 111111111111 #! Q3001"),
    ("data/aws/platform/account.yml", "name: platform", "name: shop-prod"),
    ("data/aws/shop-prod/account.yml", "name: shop-prod", "name: shop-prod #! Q2045"),
    ("data/aws/platform/account.yml", "age: 60d", "age: sixty #! Q3005"),
    ("data/dependencies/slack/lantern.yml", "timeout: 30", "timeout: #! Q3001"),
    ("data/platform/quotas/small.yml", "pods: 20", "pods: 0 #! Q3008"),
    ("data/dependencies/jira/server.yml", "jira-server-1.yml", "jira-servr-1.yml #! Q3021"),
    (
        "data/access/users/finance-one.yml",
        "$schema: /access/user-1.yml",
        "$schema: http://schemas.example/user-1.yml #! Q3022",
    ),
    (
        "data/platform/quotas/large.yml",
        "$schema: /openshift/quota-1.yml\n\nlabels: {}",
        "labels: {} #! Q3020",
    ),
    ("data/queries/dashboards.yml", "name: dashboards", "name: 2024-01-02 #! Q1007"),
    ("data/access/permissions/slack-billing.yml", "name: slack-billing", "name: yes #! Q4001 Q3001"),
];

/// Files that are added.
pub const FILES: &[(&str, &str)] = &[
    (
        "schemas/extra/thing-1.yml",
        r#"---
$schema: /metaschema-1.json
version: "1.0"
type: object
additionalProperties: false
properties:
  $schema: {type: string}
  name: {type: string, minLength: 3}
  tags: {type: array, uniqueItems: true, maxItems: 2}
  size: {anyOf: [{type: string, maxLength: 2}, {type: string, minLength: 9}]}
  kind: {oneOf: [{type: string}, {maxLength: 9}]}
  ports: {type: object, propertyNames: {pattern: "^[a-z]+$"}}
  slow: {type: string, pattern: "^(x+x+(?!z))+y$"}
  parent:
    $ref: "/common-1.json#/definitions/crossref"
    $schemaRef: {type: object, required: [tags]}
  either: {type: object, anyOf: [{required: [a]}, {required: [b]}]}
  choice:
    oneOf:
    - {type: object, additionalProperties: false, properties: {kind: {enum: [disk]}, bytes: {type: integer}}, required: [kind]}
    - {type: object, additionalProperties: false, properties: {kind: {enum: [net]}, host: {type: string}}, required: [kind]}
  needs: {type: object, dependencies: {a: [b]}}
required: [$schema, name]
"#,
    ),
    (
        "schemas/extra/bad-1.yml",
        r#"---
$schema: /metaschema-1.json
version: "1.0"
type: object
additionalProperties: false
properties:
  $schema: {type: string, enum: [/extra/bad-1.yml]}
  form: {type: strin} #! Q3101
  nowhere: {$ref: "/comon-1.json#/definitions/labels"} #! Q3103
  noplace: {$ref: "/common-1.json#/definitions/lables"} #! Q3103
  outside: {$ref: "https://schemas.example/a.json"} #! Q3103
  target: {$ref: "/common-1.json#/definitions/crossref", $schemaRef: /app-sre/apq-1.yml} #! Q3104
  broken: {type: string, pattern: "^(a$"} #! Q3105
  odd: {type: string, pattern: "^(a||b).*$"} #! Q3106
  least: {type: integer, minimal: 0} #! Q3107
  typo: {$ref: "/common-1.json#/definitions/crossref", $scemaRef: /app-sre/app-1.yml} #! Q3107
  twice: {type: string, enum: [a, b, a]} #! Q3109
  high:
    type: object
    properties: {a: {type: string}}
    b: {type: string} #! Q3108
"#,
    ),
    ("schemas/extra/meta-1.yml", "$schema: /metaschema-2.json #! Q3102\ntype: object\n"),
    (
        "schemas/extra/loose-1.yml",
        "$schema: /metaschema-1.json #! Q3003\ntype: object\nadditionalProperties: false\nproperties: {$schema: {type: string, enum: [/extra/loose-1.yml]}}\n",
    ),
    ("data/extra/short.yml", "$schema: /extra/thing-1.yml\nname: ab #! Q3009\n"),
    ("data/extra/tags.yml", "$schema: /extra/thing-1.yml\nname: tags\ntags: [a, b, c] #! Q3010\n"),
    ("data/extra/again.yml", "$schema: /extra/thing-1.yml\nname: again\ntags:\n- a\n- a #! Q3011\n"),
    ("data/extra/size.yml", "$schema: /extra/thing-1.yml\nname: size\nsize: medium #! Q3012\n"),
    ("data/extra/kind.yml", "$schema: /extra/thing-1.yml\nname: kind\nkind: both #! Q3013\n"),
    ("data/extra/ports.yml", "$schema: /extra/thing-1.yml\nname: ports\nports: {HTTP: 80} #! Q3014\n"),
    (
        "data/extra/slow.yml",
        "$schema: /extra/thing-1.yml\nname: slow\nslow: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx #! Q3006\n",
    ),
    (
        "data/extra/parent.yml",
        "$schema: /extra/thing-1.yml\nname: parent\nparent: {$ref: /services/billing/app.yml} #! Q2044\n",
    ),
    ("data/extra/either.yml", "$schema: /extra/thing-1.yml\nname: either\neither: {c: 1} #! Q3003\n"),
    (
        "data/extra/choice.yml",
        "$schema: /extra/thing-1.yml\nname: choice\nchoice:\n  kind: disk\n  bytes: many #! Q3001\n",
    ),
    ("data/extra/needs.yml", "$schema: /extra/thing-1.yml\nname: needs\nneeds: {a: 1} #! Q3003\n"),
    ("data/extra/slash.yml", "$schema: extra/thing-1.yml #! Q3023\nname: slash\n"),
    ("data/extra/syntax.yml", "$schema: /extra/thing-1.yml\nname: syntax\ntags: [a #! Q1001\n"),
    (
        "data/extra/refers.yml",
        "$schema: /extra/thing-1.yml\nname: refers to a file that has its own mistake\nparent: {$ref: /extra/syntax.yml}\n",
    ),
    ("data/extra/twice.yml", "$schema: /extra/thing-1.yml\nname: one\nname: two #! Q1010\n"),
    ("data/extra/scalar.yml", "$schema: /extra/thing-1.yml\nname: scalar\nneeds: {mode: 0755} #! Q4001\n"),
    (
        "resources/extra/checked.yml",
        "$schema: /extra/thing-1.yml\nname: /extra/checked.yml and /extra/jinja.yml are named in each other\nnmae: checked #! Q3002\n",
    ),
    ("resources/extra/jinja.yml", "$schema: /extra/thing-1.yml\nname: {{ name }} # /extra/checked.yml\n"),
    ("resources/extra/nobody.txt", "nobody needs me\n"),
    ("resources/Extra/nobody.txt", "nor me\n"),
];

/// Types that are added to the definition of the GraphQL types.
pub const TYPES: &str = r"- name: Thing_v1
  datafile: /extra/thing-1.yml
  interface: Thingy_v1 #! Q3121
  fields:
  - {name: name, type: sting} #! Q3120
  - {name: tags, type: string, isList: true, isRequired: true} #! Q3124
  - {name: motto, type: string} #! Q3125
  - {name: parent, type: Thing_v1, isUnique: true} #! Q3128
  - {name: size, type: string}
  - {name: size, type: json} #! Q3123
  - {name: children, type: Thing_v1, isList: true, synthetic: {schema: /extra/thing-1.yml, subAttr: parnt}} #! Q3126
- name: Part_v1
  fields:
  - {name: name, type: string, isUnique: true} #! Q3127
- name: Gone_v1
  datafile: /extra/gone-1.yml #! Q3122
  fields:
  - {name: name, type: string}
";

/// Findings about whole files: they have no line.
pub const WHOLE: &[(&str, &str)] =
    &[("resources/extra/jinja.yml", "Q2050"), ("resources/extra/nobody.txt", "Q4003")];
