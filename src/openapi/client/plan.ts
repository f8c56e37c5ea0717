import type { OperationType } from "../../core/operation/operation-types.ts";
import type { JsonSchema, JsonSchemaObject } from "../../core/schema/json-schema.ts";
import type { ServedSchemas } from "./document/served-schemas.ts";

/** Where a parameter travels; `querystring` is the whole query in one value (OpenAPI 3.2). */
export type ParameterPlace = "path" | "query" | "header" | "cookie" | "querystring";

/** How a value is written into its place. */
export type ParameterStyle =
  | "simple"
  | "label"
  | "matrix"
  | "form"
  | "spaceDelimited"
  | "pipeDelimited"
  | "deepObject"
  | "cookie";

/** One parameter of an operation, references followed and defaults filled in. */
export interface ParameterPlan {
  /** Its property in the input: the name, with its place where names clash. */
  readonly key: string;
  /** Its name on the wire, exactly. */
  readonly name: string;
  readonly in: ParameterPlace;
  readonly required: boolean;
  readonly style: ParameterStyle;
  readonly explode: boolean;
  /** The character between the items of a list, unescaped, where the style does not say it (`collectionFormat` of Swagger 2.0). */
  readonly separator?: string | undefined;
  readonly allowReserved: boolean;
  /** Whether an empty value may be sent (`allowEmptyValue`). */
  readonly allowEmpty: boolean;
  readonly schema: JsonSchema;
  /** The media type the value is written in, for parameters described by `content`. */
  readonly contentType?: string | undefined;
  readonly description?: string | undefined;
  readonly deprecated?: boolean | undefined;
}

/** How one property of a form or multipart body is written. */
export interface EncodingPlan {
  readonly contentType?: string | undefined;
  readonly style?: ParameterStyle | undefined;
  readonly explode?: boolean | undefined;
  /** The character between the items of a list that is one part, unescaped, where the style does not say it. */
  readonly separator?: string | undefined;
  readonly allowReserved?: boolean | undefined;
  /** Header names a part has, with their schemas. */
  readonly headers?: Readonly<Record<string, JsonSchema>> | undefined;
}

/** One media type of a body. */
export interface MediaPlan {
  /** As declared, parameters included, such as `application/json; charset=utf-8`. */
  readonly mediaType: string;
  /** Nothing is known of the body when absent. */
  readonly schema?: JsonSchema | undefined;
  /** Describes each item of a stream (OpenAPI 3.2). */
  readonly itemSchema?: JsonSchema | undefined;
  readonly encoding?: Readonly<Record<string, EncodingPlan>> | undefined;
  /** How the first parts are written, by their place (OpenAPI 3.2). */
  readonly prefixEncoding?: readonly EncodingPlan[] | undefined;
  /** How the parts behind those are written (OpenAPI 3.2). */
  readonly itemEncoding?: EncodingPlan | undefined;
}

/** The body an operation takes; media types in order of preference, the first is the one that is sent. */
export interface BodyPlan {
  /** Its property in the input: `body`, or another where a parameter has that name. */
  readonly key: string;
  readonly required: boolean;
  readonly description?: string | undefined;
  readonly content: readonly MediaPlan[];
}

/** What an operation may answer with. */
export interface ResponsePlan {
  /** `"200"`, `"2XX"` or `"default"`. */
  readonly status: string;
  readonly description?: string | undefined;
  /** Empty for a response without a body. */
  readonly content: readonly MediaPlan[];
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, JsonSchema>>;
}

/** A place an API is reached at. */
export interface ServerPlan {
  /** May be relative, and hold `{variables}`. */
  readonly url: string;
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  readonly variables: Readonly<Record<string, ServerVariablePlan>>;
}

/** One variable in the URL of a server. */
export interface ServerVariablePlan {
  readonly default?: string | undefined;
  readonly enum?: readonly string[] | undefined;
}

/** One alternative of what a caller must show: every scheme by name, with its scopes. Empty: nothing. */
export type SecurityPlan = Readonly<Record<string, readonly string[]>>;

/** A way to show who is calling, as the document declares it. */
export type SecuritySchemePlan =
  | {
      readonly type: "apiKey";
      readonly in: "header" | "query" | "cookie";
      /** Exactly as sent. */
      readonly name: string;
    }
  | { readonly type: "http"; readonly scheme: string }
  | { readonly type: "oauth2"; readonly flows: Readonly<Record<string, OAuthFlowPlan>> }
  | { readonly type: "openIdConnect"; readonly openIdConnectUrl: string }
  | { readonly type: "mutualTLS" }
  | { readonly type: "unknown" };

/** Where tokens of one flow come from. */
export interface OAuthFlowPlan {
  readonly authorizationUrl?: string | undefined;
  readonly tokenUrl?: string | undefined;
  readonly refreshUrl?: string | undefined;
  readonly scopes: readonly string[];
}

/**
 * Everything needed to call one operation, read from its document when it is first needed: upgraded to OpenAPI 3.1, references to
 * anything but schemas followed. Schemas are JSON Schema 2020-12; what they refer to is `#/$defs/…` in `definitions`.
 */
export interface OperationPlan {
  /** Upper case. */
  readonly method: string;
  /** As in the document, with `{parameters}`. */
  readonly path: string;
  /** Never empty; in order of preference. */
  readonly servers: readonly ServerPlan[];
  readonly parameters: readonly ParameterPlan[];
  readonly body: BodyPlan | undefined;
  readonly responses: readonly ResponsePlan[];
  /** Alternatives; empty where the document asks for nothing. */
  readonly security: readonly SecurityPlan[];
  /** The schemes that `security` names. */
  readonly schemes: Readonly<Record<string, SecuritySchemePlan>>;
  readonly definitions: Readonly<Record<string, JsonSchema>>;
  /** What Waybill wrote about an operation it serves; hostile like everything else in a document. */
  readonly waybill: JsonSchemaObject | undefined;
  /** What the document gets wrong about this operation and was left out or mended, one sentence each. */
  readonly notes: readonly string[];
}

/** One operation of a document, found without reading what it says about itself in full. */
export interface IndexedOperation {
  /** Unique in the document and stable: from `operationId`, or method and path. */
  readonly name: string;
  /** As in the document. */
  readonly operationId: string | undefined;
  /** Upper case. */
  readonly method: string;
  readonly path: string;
  readonly type: OperationType;
  readonly title: string | undefined;
  readonly description: string;
  readonly tags: readonly string[];
  readonly deprecated: boolean;
  /** What Waybill wrote about an operation it serves (`x-waybill`). */
  readonly waybill: JsonSchemaObject | undefined;
  /** Its own parameters as the document has them, hostile or not. */
  readonly parameters: unknown;
  /** Reads the rest, once; a document that is wrong here gives notes and never throws. */
  plan(): OperationPlan;
}

/** What could not be imported, and why. */
export interface UnusableOperation {
  /** `operationId`, or method and path. */
  readonly name: string;
  readonly reason: string;
}

/** A document, read and indexed. */
export interface IndexedApi {
  readonly title: string;
  /** A semantic version, made of what the document says. */
  readonly version: string;
  readonly description: string | undefined;
  /** Where the document was read from; relative servers are relative to it. */
  readonly location: URL | undefined;
  /** Where the API is, as the document says for all of it; never empty. */
  readonly servers: readonly ServerPlan[];
  readonly operations: readonly IndexedOperation[];
  readonly unusable: readonly UnusableOperation[];
  /** Whether any operation asks for credentials. */
  readonly asksForCredentials: boolean;
  /** Names of the security schemes, with what they are. */
  readonly schemes: Readonly<Record<string, SecuritySchemePlan>>;
  /** The schemas that `x-waybill` refers to. */
  readonly servedSchemas: ServedSchemas;
}
