/**
 * What the inspector's page and its server say to each other, below `/inspect/api/`. Types alone: both sides import them, and nothing
 * else of each other. Every text in here may come from a tool, and is shown as text.
 *
 *   GET  hello                        → Hello; 401 where a token is wanted
 *   GET  live                         → a line of JSON for each LiveEvent, for as long as the page is open
 *   GET  sources                      → SourcesAnswer
 *   POST sources/retry     RetryAsk   → RetryAnswer
 *   GET  operations                   → OperationsAnswer
 *   GET  operation?id=…               → OperationView
 *   POST validate          RunAsk     → ValidateAnswer
 *   POST run               RunAsk     → a line of JSON for each RunEvent; whoever leaves cancels the call
 *   POST answer            AnswerAsk  → {}
 *   GET  call?seq=…                   → CallView
 *   POST formats           FormatsAsk → FormatsAnswer
 *   POST decode            DecodeAsk  → DecodeAnswer
 *
 * What is refused or fails is a `Failure` with the status of its code.
 */

export type { CallFailure, Failure } from "./protocol/call-failure.ts";
export type {
  CallView,
  EnvelopeView,
  KeptReason,
  ResultView,
} from "./protocol/call-view.ts";
export type { DecodeAnswer, DecodeAsk, DecodedView } from "./protocol/decode-answer.ts";
export type { DifferenceView, FormatsAnswer, FormatsAsk, FormatView } from "./protocol/formats-answer.ts";
export type { Hello } from "./protocol/hello.ts";
export type { CallRow, LiveEvent } from "./protocol/live-event.ts";
export type {
  JsonSchemaView,
  OperationRow,
  OperationsAnswer,
  OperationView,
} from "./protocol/operation-view.ts";
export type {
  AnswerAsk,
  IssueView,
  Question,
  RunAsk,
  RunEvent,
  ValidateAnswer,
} from "./protocol/run-event.ts";
export type {
  BusTraffic,
  CallStats,
  LockView,
  RetryAnswer,
  RetryAsk,
  SourcesAnswer,
  SourceView,
} from "./protocol/source-view.ts";
