import type { OperationContext } from "../../core/operation/operation-context.ts";
import type { AnyOperation, OperationAnnotations, Pager } from "../../core/operation/operation-types.ts";
import type { JsonSchema } from "../../core/schema/json-schema.ts";
import { cleanText } from "../../core/text/clean-text.ts";
import { mergePatch } from "./document/merge-patch.ts";
import type { OperationOverlay } from "./openapi-options.ts";
import { type ImportSettings, OperationCaller } from "./operation-caller.ts";
import type { DescribedOperation } from "./plan.ts";
import { toInputSchema } from "./request/input-schema.ts";
import { toOutputSchema } from "./response/output-schema.ts";
import { DEPRECATED, type WaybillFacts } from "./waybill-facts.ts";

/** How an operation is named and what is changed about it. */
export interface ImportedNames {
  readonly namespace: string;
  readonly name: string;
  readonly version: string;
  readonly overlay: OperationOverlay;
  /** What Waybill wrote about it, where Waybill serves it. */
  readonly waybill: WaybillFacts | undefined;
}

/** Methods that may be sent twice without doing more than once (RFC 9110), and QUERY. */
const IDEMPOTENT = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "QUERY"]);
const READING = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "QUERY"]);

/** One operation of a document: known by name from the start, read in full when somebody looks at it or calls it. */
export class ImportedOperation {
  readonly operation: AnyOperation;
  readonly #described: DescribedOperation;
  readonly #names: ImportedNames;
  readonly #settings: ImportSettings;
  #caller: OperationCaller | undefined;
  readonly #idempotent: boolean;
  #input: { readonly schema: JsonSchema } | undefined;
  #output: { readonly schema: JsonSchema | undefined } | undefined;

  constructor(described: DescribedOperation, names: ImportedNames, settings: ImportSettings) {
    this.#described = described;
    this.#names = names;
    this.#idempotent = names.overlay.idempotent ?? IDEMPOTENT.has(described.method);
    this.#settings = settings;
    this.operation = this.#define();
  }

  /** What the document gets wrong about it. */
  get notes(): readonly string[] {
    return this.#described.plan().notes;
  }

  #define(): AnyOperation {
    const { namespace, name, overlay, waybill } = this.#names;
    const { type, description } = this.#described;
    const imported = this;
    const spec = waybill === undefined ? this.#spec() : { version: this.#names.version, ...waybill.spec };
    return Object.freeze({
      namespace,
      name,
      id: `${namespace}.${name}` as const,
      type,
      source: "http" as const,
      ...spec,
      ...this.#overlaid(),
      // What a document says is foreign text, and what an overlay says the user's own.
      ...(spec.title !== undefined && { title: cleanText(spec.title).text }),
      description: cleanText(spec.description ?? description).text,
      ...(overlay.title !== undefined && { title: overlay.title }),
      ...(overlay.description !== undefined && { description: overlay.description }),
      get inputSchema() {
        return imported.#inputSchema();
      },
      get outputSchema() {
        return imported.#outputSchema();
      },
      handler: (input: unknown, context: OperationContext) =>
        type === "subscription"
          ? imported.#calling().stream(input, context)
          : imported.#calling().call(input, context),
    }) as AnyOperation;
  }

  /** What an overlay says of whether it reads, and may be sent twice, wins over whatever a document does. */
  #overlaid(): Partial<AnyOperation> {
    const { overlay, waybill } = this.#names;
    const { readOnly, idempotent, stream } = overlay;
    if (waybill === undefined || (readOnly ?? idempotent ?? stream) === undefined) return {};
    const hints = {
      ...(readOnly !== undefined && { readOnly }),
      ...(idempotent !== undefined && { idempotent }),
    };
    return { type: this.#described.type, annotations: { ...waybill.spec.annotations, ...hints } };
  }

  /** What a document says of an operation that Waybill does not serve. */
  #spec(): Partial<AnyOperation> {
    const { title, tags, deprecated } = this.#described;
    return {
      version: this.#names.version,
      ...(title !== undefined && { title }),
      ...(tags.length > 0 && { tags }),
      annotations: this.#annotations(),
      ...(deprecated && { _meta: DEPRECATED }),
      pager: this.#pager(),
    };
  }

  #annotations(): OperationAnnotations {
    const { method, type } = this.#described;
    return {
      readOnly: type !== "mutation" && (READING.has(method) || this.#names.overlay.readOnly === true),
      ...(method === "DELETE" && { destructive: true }),
      idempotent: this.#idempotent,
      openWorld: true,
    };
  }

  /** The pager is asked for only after a call, when the document has been read anyway. */
  #pager(): Pager {
    return { next: (envelope, input) => this.#calling().nextPage(envelope, input) };
  }

  /** What calls it, made when it is first called. */
  #calling(): OperationCaller {
    const { waybill, overlay } = this.#names;
    this.#caller ??= new OperationCaller(
      {
        id: this.operation.id,
        described: this.#described,
        waybill,
        idempotent: this.#idempotent,
        paging: overlay.paging,
        outputSchema: () => this.#outputSchema(),
      },
      this.#settings,
    );
    return this.#caller;
  }

  #inputSchema(): JsonSchema {
    this.#input ??= { schema: this.#readInputSchema() };
    return this.#input.schema;
  }

  #readInputSchema(): JsonSchema {
    const { overlay, waybill } = this.#names;
    const schema = waybill === undefined ? toInputSchema(this.#described.plan()) : waybill.inputSchema();
    return overlay.input === undefined
      ? (schema as JsonSchema)
      : (mergePatch(schema, overlay.input) as JsonSchema);
  }

  #outputSchema(): JsonSchema | undefined {
    this.#output ??= { schema: this.#readOutputSchema() };
    return this.#output.schema;
  }

  #readOutputSchema(): JsonSchema | undefined {
    const { overlay, waybill } = this.#names;
    const stream = this.#described.type === "subscription";
    const schema =
      waybill === undefined ? toOutputSchema(this.#described.plan(), { stream }) : waybill.outputSchema();
    return overlay.output === undefined ? schema : (mergePatch(schema, overlay.output) as JsonSchema);
  }
}
