import type { RateOptions, RetryOptions } from "../../core/options/shared-options.ts";
import { APPROVAL_PLACES, type ApprovePolicy, type InputRule } from "../approvals/approve-policy.ts";
import { MOST_PATTERN_CHARACTERS } from "../glob.ts";
import type { GuardPolicy, JudgeOptions } from "../guard/result-guard.ts";
import type { OperationPolicy, SourcePolicy } from "../policy/policy.ts";
import { type ResultTemplate, TEMPLATE_PATTERN } from "../policy/result-template.ts";
import { LONGEST_KEEP_MS } from "../state/state-store.ts";
import {
  anyText,
  type ConfigSchema,
  choice,
  definition,
  delay,
  fields,
  flag,
  list,
  map,
  number,
  text,
  whole,
} from "./config-schema-parts.ts";

/** A pattern of names: `*` any characters, `?` one, `{a,b}` either. */
export const PATTERN: ConfigSchema = { type: "string", minLength: 1, maxLength: MOST_PATTERN_CHARACTERS };

const RETRY = {
  attempts: whole("Attempts, the first included. Default: 3.", 1, 100),
  delayMs: whole(
    "Milliseconds before the second attempt; doubled for each further one, and varied. Default: 200.",
    0,
  ),
  maxDelayMs: whole(
    "The most milliseconds between two attempts, what the source asks for included. Default: 20000.",
    0,
  ),
} satisfies Record<keyof RetryOptions, ConfigSchema>;

const RATE = {
  calls: whole("Calls in a period.", 1),
  perMs: whole("The period, in milliseconds.", 1),
} satisfies Record<keyof RateOptions, ConfigSchema>;

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

const action = (description: string): ConfigSchema =>
  choice(`${description} Default: off.`, ["off", "mark", "mask", "withhold"]);

const JUDGE = {
  url: text("Where it is asked, by POST."),
  headers: map("Headers of what it is asked.", text("A value.")),
  timeoutMs: delay("Milliseconds that it may take. Default: 5000.", 1),
  otherwise: choice("What becomes of a result that it did not judge. Default: withhold.", [
    "mark",
    "withhold",
  ]),
} satisfies Record<keyof JudgeOptions, ConfigSchema>;

const GUARD = {
  credentials: action("Keys, tokens, passwords and private keys."),
  cards: action("Numbers of payment cards."),
  hidden: action("Characters that nobody sees or that terminals act on."),
  links: action("Links to hosts that linkHosts does not name."),
  linkHosts: list("Hosts that links may lead to, as patterns. Default: none.", PATTERN),
  judge: fields("A service that is asked about every text of a result. Default: none.", JUDGE, ["url"]),
} satisfies Record<keyof GuardPolicy, ConfigSchema>;

const RULE = {
  pointer: anyText(
    'JSON pointer into the input, such as "/amount"; * stands for every item or member. Default: the input itself.',
  ),
  in: list("The value is one of these.", { description: "A text, a number, true, false or null." }),
  above: number("The value is larger; what is no number cannot be compared, and fits."),
  atLeast: number("The value is as large or larger."),
  below: number("The value is smaller."),
  atMost: number("The value is as small or smaller."),
  schema: { description: "The value matches this JSON Schema.", type: "object" },
} satisfies Record<keyof InputRule, ConfigSchema>;

const APPROVE = {
  calls: choice(
    "Which calls wait: all, those of operations that may destroy something, or none. What changes something and does not say whether that destroys may destroy. Default: all.",
    ["all", "destructive", "none"],
  ),
  rules: list(
    "Of those, only calls whose input fits at least one rule wait. Default: whatever the input.",
    fields("A rule; it fits where all of its members do.", RULE),
  ),
  scopes: list("Scopes that an approver must have, all of them. Default: waybill:approve.", text("A scope.")),
  subjects: list("Who may approve. Default: everybody with the scopes.", text("A subject.")),
  own: flag("Callers may approve their own calls. Default: false."),
  by: list(
    "Whose word counts. Default: page, inspector, command, webhook.",
    choice("Where people are asked; client is the caller's own client.", [...APPROVAL_PLACES]),
  ),
  holdMs: whole(
    "Milliseconds that a call is held before it is answered with APPROVAL_REQUIRED. Default: 55000.",
    0,
  ),
  expiresMs: whole(
    "Milliseconds in which a request may be decided, and what was approved be called. Default: 3600000.",
    1_000,
    LONGEST_KEEP_MS,
  ),
} satisfies Record<keyof ApprovePolicy, ConfigSchema>;

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
  retry: fields(
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
  guard: fields(
    "What is looked for in results, and what is done where it is found: nothing, a note in the facts, stars in its place, or an error in place of the result. Default: nothing.",
    GUARD,
  ),
  approve: fields(
    "Which calls wait until a person has approved them, who may do that, and where they are asked. Default: none waits.",
    APPROVE,
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
