import { MOST_PATTERN_CHARACTERS } from "../glob-pattern.ts";
import type { OperationPolicy, RetryPolicy, SourcePolicy } from "../policy/policy.ts";
import { type ResultTemplate, TEMPLATE_PATTERN } from "../policy/result-template.ts";
import { type ConfigSchema, choice, definition, fields, flag, list, text, whole } from "./schema-parts.ts";

/** A pattern of names: `*` any characters, `?` one, `{a,b}` either. */
export const PATTERN: ConfigSchema = { type: "string", minLength: 1, maxLength: MOST_PATTERN_CHARACTERS };

const RETRY = {
  attempts: whole("Attempts, the first included. Default: 3.", 1, 100),
  delayMs: whole(
    "Milliseconds before the second attempt; doubled for each further one, and varied. Default: 200.",
    0,
  ),
  maxDelayMs: whole("The most milliseconds between two attempts. Default: 10000.", 0),
} satisfies Record<keyof RetryPolicy, ConfigSchema>;

const RATE = {
  calls: whole("Calls in a period.", 1),
  perMs: whole("The period, in milliseconds.", 1),
} satisfies Record<keyof NonNullable<OperationPolicy["rate"]>, ConfigSchema>;

const template = (description: string): ConfigSchema => ({
  description,
  type: "string",
  minLength: 1,
  pattern: TEMPLATE_PATTERN,
});

const RENDER = {
  status: choice("How the result is headed. Default: ok.", ["ok", "info", "warn"]),
  summary: template('One line, such as "{#/items} orders of {/customer/name}".'),
  details: list("Lines for people.", template("A line.")),
  nextSteps: list("What the agent may do now.", template("A line.")),
  markdown: template("A text in place of the data's JSON, for hosts that show text alone."),
  links: list(
    "Where more can be read.",
    fields("A link.", { uri: template("Its address."), name: template("What it is called.") }, [
      "uri",
      "name",
    ]),
  ),
} satisfies Record<keyof ResultTemplate, ConfigSchema>;

const OPERATION = {
  enabled: flag("False takes the operation away: it is neither listed nor callable. Default: true."),
  scopes: list(
    "Scopes a caller must hold, all of them, besides what the operation asks for. Default: none.",
    text("A scope."),
  ),
  timeoutMs: whole(
    "The longest a call may take, attempts and waiting included, in milliseconds. Default: none.",
    1,
  ),
  retries: fields(
    "Tries calls again that failed with an error that may pass; only those of read-only or idempotent operations. Default: one attempt.",
    RETRY,
  ),
  rate: fields("Calls in a period; more wait their turn. Default: as many as there are.", RATE, [
    "calls",
    "perMs",
  ]),
  concurrency: whole("Calls that run at a time; more wait their turn. Default: as many as there are.", 1),
  cacheMs: whole(
    "Keeps ok results of read-only operations for the same caller and input, in milliseconds. Default: 0.",
    0,
  ),
  singleFlight: flag(
    "Calls of read-only operations by the same caller with the same input share one run. Default: false.",
  ),
  resultBudget: whole(
    "Characters of a result, written as JSON, that are sent whole over MCP; longer ones become a preview and a link. Default: 200000.",
    1,
  ),
  render: fields(
    "What is said about ok results where the operation says nothing itself. Places in its texts: {/pointer} is the value at a JSON pointer into the data, {#/pointer} how many items it has. A text with a place that leads nowhere is left out. Default: nothing.",
    RENDER,
  ),
} satisfies Record<keyof OperationPolicy, ConfigSchema>;

const SOURCE = {
  ...OPERATION,
  allow: list(
    "Names of operations, as patterns without the namespace; others are left out. Default: all.",
    PATTERN,
  ),
  deny: list("Names of operations that are left out, as patterns; wins over allow. Default: none.", PATTERN),
} satisfies Record<keyof SourcePolicy, ConfigSchema>;

/** What stands under `$defs` for policies. */
export const POLICY_DEFINITIONS = {
  operationPolicy: fields("How calls of an operation are made, and who may make them.", OPERATION),
  sourcePolicy: fields(
    "The policy of a whole source: rate and concurrency are counted over all its operations.",
    SOURCE,
  ),
} satisfies Record<string, ConfigSchema>;

/** The policy of a source. */
export const SOURCE_POLICY = definition(
  "sourcePolicy",
  "How its operations are called, and which of them are mounted. Default: all, freely.",
);
