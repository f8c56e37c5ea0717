export type { BearerAuth, ResourceMetadata } from "../http/bearer.ts";
export type { BearerKeys } from "../http/bearer-keys.ts";
export type { AnswerHeaders, HttpAnswer, HttpRequest } from "../http/exchange.ts";
export type { ListenOptions } from "../http/listen.ts";
export type {
  AuthOptions,
  BasicCredential,
  Credential,
  CredentialRequest,
  CredentialValue,
  OAuthCredential,
} from "./client/auth/credentials.ts";
export { fromOpenApi } from "./client/from-openapi.ts";
export type {
  DocumentLimits,
  OpenApiOptions,
  OpenApiOverlay,
  OperationOverlay,
  PagingRule,
  RetryOptions,
  TransportLimits,
  TransportOptions,
} from "./client/openapi-options.ts";
export type { OpenApiSource, OperationNote } from "./client/openapi-source.ts";
export type { UnusableOperation } from "./client/plan.ts";
export type { ApiKeyAuth } from "./server/api-keys.ts";
export type { OpenApiDocument } from "./server/document/openapi-document.ts";
export { createHttpHandler, type HttpCloseOptions, type HttpHandler } from "./server/http-handler.ts";
export type {
  ApiInfo,
  HttpAuthOptions,
  HttpHandlerLimits,
  HttpHandlerOptions,
  ToOpenApiOptions,
} from "./server/http-handler-options.ts";
export { type HttpServer, type ServeHttpOptions, serveHttp } from "./server/serve-http.ts";
export { toOpenApi } from "./server/to-openapi.ts";
