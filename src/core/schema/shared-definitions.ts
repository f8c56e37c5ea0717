import { isObject, type JsonSchema, type JsonSchemaObject, MODERN } from "./json-schema.ts";
import {
  isTodaysDialect,
  type KnownDefinition,
  learnReferences,
  surveyPlainSchema,
  withSameReferences,
} from "./plain-schema.ts";
import type { SchemaIndex, SchemaResource } from "./schema-index.ts";
import type { SchemaNode } from "./schema-node.ts";
import type { NodeCost } from "./vet-nodes.ts";

/** A definition with its nodes, for every schema that has the same frozen object, and the same behind all it refers to. */
interface SharedDefinition extends KnownDefinition<SharedDefinition> {
  readonly node: SchemaNode;
  readonly cost: NodeCost;
}

/** The first meaning of each definition; a schema in which it means something else gets nodes of its own. */
const known = new WeakMap<JsonSchemaObject, SharedDefinition>();

/** What the nodes of every schema with shared definitions belong to: there are no names in it but those of the definitions. */
export const PLAIN_RESOURCE: SchemaResource = Object.freeze({
  uri: "waybill:///",
  root: {},
  dialect: MODERN,
  anchors: new Map(),
  dynamicAnchors: new Map(),
  dynamicNodes: new Map(),
});

/** The definitions that one schema shares with others, so that each of them is indexed, built and vetted once for all. */
export class SharedDefinitions {
  /** By name; those that were frozen before this schema was compiled, and so may stand in others. */
  readonly #frozen: ReadonlyMap<string, JsonSchemaObject>;
  readonly #inUse: ReadonlyMap<string, SharedDefinition>;
  readonly #byNode = new Map<SchemaNode, SharedDefinition>();

  private constructor(frozen: ReadonlyMap<string, JsonSchemaObject>) {
    this.#frozen = frozen;
    this.#inUse = findUsable(frozen);
    for (const shared of this.#inUse.values()) this.#byNode.set(shared.node, shared);
  }

  /** Finds what can be shared of a schema and its frozen copy; nothing where that has names of its own. */
  static of(schema: unknown, copy: JsonSchema): SharedDefinitions | undefined {
    if (!isObject(schema) || !isObject(copy) || !isObject(copy["$defs"])) return undefined;
    const given = schema["$defs"];
    const { $defs, ...rest } = copy;
    const frozen = new Map<string, JsonSchemaObject>();
    for (const name of Object.keys($defs)) {
      const definition = $defs[name];
      // What was frozen before is not copied.
      if (isObject(definition) && isObject(given) && given[name] === definition) frozen.set(name, definition);
    }
    if (frozen.size === 0 || !isTodaysDialect(rest["$schema"])) return undefined;
    return surveyPlainSchema(rest) === undefined ? undefined : new SharedDefinitions(frozen);
  }

  /** Counts those in use into the index of the schema, which needs not look into them then. */
  addTo(index: SchemaIndex): void {
    for (const [name, shared] of this.#inUse) {
      index.addKnown(this.#frozen.get(name) as JsonSchemaObject, shared);
    }
  }

  /** What vetting found out about a definition whose root this is. */
  costOf(node: SchemaNode): NodeCost | undefined {
    return this.#byNode.get(node)?.cost;
  }

  /** Tells whether a definition that is reached from these nodes declares a default. */
  hasDefaults(nodes: Iterable<SchemaNode>): boolean {
    const reached = new Set<SharedDefinition>();
    for (const node of nodes) {
      const shared = this.#byNode.get(node);
      if (shared !== undefined) reached.add(shared);
    }
    for (const { plain, refs } of reached) {
      if (plain.hasDefaults) return true;
      for (const next of refs.values()) reached.add(next);
    }
    return false;
  }

  /** Keeps what was built and vetted for other schemas. */
  learn(
    nodeOf: (definition: JsonSchemaObject) => SchemaNode | undefined,
    costs: ReadonlyMap<SchemaNode, NodeCost>,
  ): void {
    const made = new Map<string, SharedDefinition & { readonly refs: Map<string, SharedDefinition> }>();
    for (const [name, definition] of this.#frozen) {
      const node = known.has(definition) ? undefined : nodeOf(definition);
      const cost = node === undefined ? undefined : costs.get(node);
      const plain = node === undefined ? undefined : surveyPlainSchema(definition);
      if (node === undefined || cost === undefined || plain === undefined || plain.refersToRoot) continue;
      made.set(name, { node, cost, plain, refs: new Map() });
    }
    learnReferences(made, this.#inUse, (name, shared) => {
      known.set(this.#frozen.get(name) as JsonSchemaObject, shared);
    });
  }
}

function findUsable(frozen: ReadonlyMap<string, JsonSchemaObject>): ReadonlyMap<string, SharedDefinition> {
  const found = new Map<string, SharedDefinition>();
  for (const [name, definition] of frozen) {
    const shared = known.get(definition);
    if (shared !== undefined) found.set(name, shared);
  }
  return withSameReferences(found);
}
