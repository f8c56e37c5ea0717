import "./approvals.css";
import { useEffect, useState } from "preact/hooks";
import type { ApprovalRow, ApprovalsAnswer } from "../../protocol.ts";
import { type Asked, toApiError, useAsked, useNow, useSession } from "../page-session.ts";
import { Badge, Empty, MoreList, PendingNotice, type Tone } from "../parts/controls.tsx";
import { PlainText } from "../parts/plain-text.tsx";
import { showAgo } from "../parts/show.ts";

/** Between two looks at what waits: other replicas hold and decide too. */
const LOOK_MS = 3_000;

const STATES: Readonly<Record<ApprovalRow["state"], Tone>> = {
  waiting: "warn",
  approved: "ok",
  denied: "bad",
};

const REFUSALS: Readonly<Record<NonNullable<ApprovalRow["refusal"]>, string>> = {
  own: "This is your own call: somebody else has to decide.",
  rights: "You may not decide about this call.",
  place: "Calls of this operation are not decided about in the inspector.",
  decided: "Decided. The same call has not been made again yet.",
};

/** Asks for the calls that wait, again and again while they are shown. */
function useApprovals(): Asked<ApprovalsAnswer> {
  const { api } = useSession();
  const asked = useAsked((signal) => api.approvals(signal), [api]);
  useEffect(() => {
    const timer = setInterval(asked.again, LOOK_MS);
    return () => clearInterval(timer);
  }, [api]);
  return asked;
}

/** The calls that wait for a person, each of them whole, with what to do about it. */
export function ApprovalsView() {
  const asked = useApprovals();
  const { value, again } = asked;
  const approvals = value?.approvals ?? [];
  return (
    <div class="content stack approvals">
      <PendingNotice {...asked} what="the calls that wait" />
      {value !== undefined && approvals.length === 0 && (
        <Empty title="No call waits for you">
          Calls that a policy holds are shown here to those who may approve them. The user who started the
          gateway decides with waybill approvals.
        </Empty>
      )}
      <MoreList
        label="Calls that wait for approval"
        items={approvals}
        draw={(row) => <ApprovalCard key={row.id} row={row} onDecided={again} />}
      />
    </div>
  );
}

function ApprovalCard({ row, onDecided }: { readonly row: ApprovalRow; readonly onDecided: () => void }) {
  const now = useNow(LOOK_MS);
  const { caller, operation, source, askedAt, expiresAt, state, destructive } = row;
  const minutes = Math.max(Math.round((expiresAt - now) / 60_000), 0);
  return (
    <section class="card stack" aria-label={`Call of ${operation}`}>
      <header class="row">
        <h2 class="break">
          <PlainText text={operation} most={300} />
        </h2>
        <Badge tone={STATES[state]}>{state}</Badge>
        {destructive === true && <Badge tone="bad">destructive</Badge>}
      </header>
      <p class="soft small">
        <PlainText text={callerWords(caller)} most={300} /> asked {showAgo(askedAt, now)}
        {source !== undefined && (
          <>
            {" "}
            · source <PlainText text={source} most={200} />
          </>
        )}{" "}
        · ends in {minutes} min · {row.id.slice(0, 12)}
      </p>
      <div>
        <h3>Input</h3>
        <pre class="input">
          <PlainText text={row.input === "" ? "none" : row.input} most={20_000} />
        </pre>
      </div>
      <div class="said">
        <h3>What it says of itself, checked by nobody</h3>
        <PlainText text={wordsOf(row)} most={4_000} />
      </div>
      {row.refusal === undefined ? (
        <Decide row={row} onDecided={onDecided} />
      ) : (
        <p class="soft">
          {REFUSALS[row.refusal]}
          {row.decision !== undefined && (
            <>
              {" "}
              By <PlainText text={decisionWords(row.decision)} most={800} />
            </>
          )}
        </p>
      )}
    </section>
  );
}

function Decide({ row, onDecided }: { readonly row: ApprovalRow; readonly onDecided: () => void }) {
  const { api, say } = useSession();
  const [comment, setComment] = useState("");
  const [isBusy, setBusy] = useState(false);
  const decide = (decision: "approve" | "deny"): void => {
    setBusy(true);
    api
      .decide({ id: row.id, decision, ...(comment !== "" && { comment }) })
      .then(
        () => say(decision === "approve" ? "Approved: the same call runs once." : "Denied."),
        (thrown: unknown) => say(toApiError(thrown).message),
      )
      .finally(() => {
        setBusy(false);
        onDecided();
      });
  };
  return (
    <div class="row decide">
      <label class="grow">
        Why (may be left empty)
        <input
          type="text"
          maxLength={500}
          autocomplete="off"
          value={comment}
          onInput={(event) => setComment(event.currentTarget.value)}
        />
      </label>
      <button type="button" class="primary" disabled={isBusy} onClick={() => decide("approve")}>
        Approve once
      </button>
      <button type="button" disabled={isBusy} onClick={() => decide("deny")}>
        Deny
      </button>
    </div>
  );
}

function callerWords({ subject, issuer, recognised }: ApprovalRow["caller"]): string {
  if (subject === undefined) return "An anonymous caller";
  if (issuer !== undefined) return `${subject} (signed by ${issuer})`;
  return recognised === "token" ? `${subject} (token of the config)` : subject;
}

function wordsOf({ title, description }: ApprovalRow): string {
  const words = [title, description].filter((text) => text !== undefined && text !== "");
  return words.length === 0 ? "Nothing." : words.join("\n");
}

function decisionWords({ by, via, comment }: NonNullable<ApprovalRow["decision"]>): string {
  return `${by.subject ?? "somebody"} (${via})${comment === undefined ? "" : `: ${comment}`}.`;
}
