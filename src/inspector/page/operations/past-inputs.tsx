import { showAgo } from "../parts/show.ts";
import { visibleText } from "../parts/visible-text.ts";
import { useSession } from "../session.ts";
import type { PastInput } from "./input-history.ts";
import type { OperationDesk } from "./operation-desk.ts";
import { useWorkspace } from "./workspace.ts";

/** The inputs that an operation was run with before, to be taken up again or forgotten. */
export function PastInputs({
  id,
  desk,
}: {
  /** What is closed once something is chosen. */
  readonly id: string;
  readonly desk: OperationDesk;
}) {
  const { history } = useWorkspace();
  const { say } = useSession();
  const operation = desk.operation.id;
  const inputs = history.inputs(operation);
  const take = ({ text, isPartial }: PastInput): void => {
    desk.replace(JSON.parse(text));
    if (isPartial) say("Secrets are not kept: fill them in.");
  };
  return (
    <>
      <h3>Inputs run before</h3>
      {inputs.length === 0 && (
        <p class="soft small">Nothing yet. Inputs you run are kept here, without secrets.</p>
      )}
      {inputs.map((past) => (
        <button type="button" class="quiet" key={past.text} popovertarget={id} onClick={() => take(past)}>
          <span class="mono cut">{visibleText(past.text, 120)}</span>
          <span class="soft small">
            {showAgo(past.at)}
            {past.isPartial && ", without secrets"}
          </span>
        </button>
      ))}
      {inputs.length > 0 && (
        <button type="button" popovertarget={id} onClick={() => history.forget(operation)}>
          Forget all
        </button>
      )}
    </>
  );
}
