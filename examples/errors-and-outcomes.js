// @ts-check
// Three outcomes: ok, a tool error (it ran and reported an error), a call error (it never ran, or broke).
import assert from "node:assert/strict";
import {
  CallError,
  createClient,
  defineOperation,
  isCallError,
  OperationRegistry,
  ToolResultError,
  Type,
  toolError,
} from "waybill";

const withdraw = defineOperation({
  namespace: "account",
  name: "withdraw",
  version: "1.0.0",
  type: "mutation",
  description: "Takes money out.",
  inputSchema: Type.Object({ amount: Type.Integer({ minimum: 1 }) }),
  outputSchema: Type.Object({ balance: Type.Integer() }),
  errors: [{ code: "ACCOUNT_FROZEN", description: "Nothing moves until it is unfrozen.", httpStatus: 423 }],
  handler: ({ amount }) => {
    if (amount === 13)
      throw new CallError("ACCOUNT_FROZEN", "This account is frozen.", { details: { since: "May" } });
    if (amount === 99) throw new Error("SELECT * FROM accounts failed on host db-7");
    if (amount > 100)
      return toolError({ balance: 100 }, { code: "INSUFFICIENT_FUNDS", message: "Only 100 left." });
    return { balance: 100 - amount };
  },
});

const registry = new OperationRegistry([withdraw]);

// A tool error is an answer: execute() returns it, marked.
const refused = await registry.execute(withdraw, { amount: 500 });
assert.equal(refused.meta.isError, true);
assert.deepEqual(refused.data, { balance: 100 });
assert.equal(refused.meta.waybill?.code, "INSUFFICIENT_FUNDS");

// The typed client throws it, with the whole envelope attached.
await assert.rejects(createClient(registry).call(withdraw, { amount: 500 }), (error) => {
  assert.ok(error instanceof ToolResultError);
  assert.deepEqual(error.envelope.data, { balance: 100 });
  return true;
});

/** @param {number} amount */
async function failure(amount) {
  try {
    await registry.execute(withdraw, { amount });
  } catch (error) {
    if (isCallError(error)) return error.toJSON();
  }
  assert.fail("expected a call error");
}

// A call error is thrown: wrong input never reaches the handler.
const invalid = await failure(0);
assert.equal(invalid.code, "VALIDATION_ERROR");
assert.equal(invalid.correctable, true);

// A declared error keeps its code and details.
const frozen = await failure(13);
assert.equal(frozen.code, "ACCOUNT_FROZEN");
assert.deepEqual(frozen.details, { since: "May" });

// Anything else a handler throws becomes EXECUTION_ERROR, and its text stays in the process.
const broken = await failure(99);
assert.equal(broken.code, "EXECUTION_ERROR");
assert.doesNotMatch(JSON.stringify(broken), /SELECT|db-7/);
console.log("An unexpected failure reads", JSON.stringify(broken), "to its caller.");
