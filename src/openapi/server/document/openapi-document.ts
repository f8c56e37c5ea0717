import type { JsonSchema } from "../../../core/schema/json-schema.ts";

/** Any object of an OpenAPI document. */
export type DocumentObject = Readonly<Record<string, unknown>>;

/** An OpenAPI 3.1 document, as plain JSON. */
export interface OpenApiDocument {
  readonly openapi: "3.1.1";
  readonly info: { readonly title: string; readonly version: string; readonly description?: string };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string }[];
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly headers: DocumentObject;
    readonly parameters: DocumentObject;
    readonly responses: DocumentObject;
    readonly securitySchemes?: DocumentObject;
  };
  readonly "x-waybill": {
    /** What results may be asked for as, besides what is listed with them. */
    readonly mediaTypes: readonly string[];
    /** Where the API is, relative to where this document was read from, where nothing else was said. */
    readonly base?: string;
  };
}

/** What is served at one path. */
export interface PathItem {
  readonly get?: DescribedOperation;
  readonly post?: DescribedOperation;
  readonly delete?: DescribedOperation;
}

/** One method of one path. */
export interface DescribedOperation {
  readonly operationId: string;
  readonly summary?: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly deprecated?: boolean;
  readonly security?: readonly DocumentObject[];
  readonly parameters?: readonly DocumentObject[];
  readonly requestBody?: DocumentObject;
  readonly responses: Readonly<Record<string, DocumentObject>>;
  readonly "x-waybill": DocumentObject;
}
