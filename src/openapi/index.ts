export type { ApiKeyAuth, HttpAuthOptions } from "../http/authentication.ts";
export type { BearerAuth, BearerIssuer, ResourceMetadata } from "../http/bearer.ts";
export type { BearerKeys } from "../http/bearer-keys.ts";
export type { DpopAuth } from "../http/dpop-proof.ts";
export type { AnswerHeaders, HttpAnswer, HttpRequest } from "../http/exchange.ts";
export type { TokenIntrospection } from "../http/introspection.ts";
export type { ListenLimits, ListenOptions } from "../http/listen.ts";
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
  TransportLimits,
  TransportOptions,
} from "./client/openapi-options.ts";
export type { OpenApiSource, OperationNote } from "./client/openapi-source.ts";
export type { UnusableOperation } from "./client/plan.ts";
export type { OpenApiDocument } from "./server/document/openapi-document.ts";
export { createHttpHandler, type HttpHandler } from "./server/http-handler.ts";
export type {
  ApiInfo,
  HttpHandlerLimits,
  HttpHandlerOptions,
  ToOpenApiOptions,
} from "./server/http-handler-options.ts";
export type { OperationDirectory } from "./server/operation-routes.ts";
export { type HttpServer, type ServeHttpOptions, serveHttp } from "./server/serve-http.ts";
export { toOpenApi } from "./server/to-openapi.ts";
