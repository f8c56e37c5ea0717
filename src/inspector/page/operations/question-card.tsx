import { useState } from "preact/hooks";
import type { AnswerAsk, CallFailure, Question } from "../../protocol.ts";
import { initialValue } from "../form/initial-value.ts";
import { InputEditor } from "../form/input-editor.tsx";
import { membersIn } from "../form/json-value.ts";
import { SafeLink } from "../parts/safe-link.tsx";
import { visibleText } from "../parts/visible-text.ts";
import { toApiError } from "../session.ts";
import { failureIssues } from "./failure-issues.ts";
import { RichText } from "./rich-text.tsx";

type Answer = Pick<AnswerAsk, "action" | "content">;

const ANSWERS = [
  ["accept", "Accept", "primary"],
  ["decline", "Decline", ""],
  ["cancel", "Dismiss", "quiet"],
] as const;

/** A question that an operation asks while it runs. */
export function QuestionCard({
  question,
  operation,
  onAnswer,
}: {
  readonly question: Question;
  readonly operation: string;
  readonly onAnswer: (answer: Answer) => Promise<void>;
}) {
  const { value, setValue, unread, setUnread, isSent, failure, send } = useAnswer(question, onAnswer);
  return (
    <section class="card stack question" aria-label="Question of the operation">
      <h3 class="break">{visibleText(operation, 200)} asks</h3>
      <RichText text={question.message} />
      {question.mode === "url" ? (
        <p>
          If you trust the operation, visit{" "}
          <SafeLink address={question.url} text={visibleText(question.url, 2_000)} />, then accept.
        </p>
      ) : (
        <InputEditor
          schema={question.schema}
          value={value}
          onChange={setValue}
          onInvalid={setUnread}
          issues={failure === undefined ? [] : failureIssues(failure)}
          label="Answer"
          onRun={() => send("accept")}
        />
      )}
      {failure !== undefined && (
        <p class="notice bad" role="alert">
          {visibleText(failure.message, 1_000)}
        </p>
      )}
      <div class="row">
        {ANSWERS.map(([action, label, look]) => (
          <button
            type="button"
            key={action}
            class={look}
            disabled={isSent || (action === "accept" && unread !== undefined)}
            onClick={() => send(action)}
          >
            {label}
          </button>
        ))}
      </div>
    </section>
  );
}

/** An answer as it is filled in and sent; a refused one can be sent again. */
function useAnswer(question: Question, onAnswer: (answer: Answer) => Promise<void>) {
  const [value, setValue] = useState(() =>
    question.mode === "form" ? initialValue(question.schema) : undefined,
  );
  const [unread, setUnread] = useState<string>();
  const [isSent, setSent] = useState(false);
  const [failure, setFailure] = useState<CallFailure>();
  const send = (action: AnswerAsk["action"]): void => {
    const isAccepted = action === "accept";
    if (isSent || (isAccepted && unread !== undefined)) return;
    setSent(true);
    // Answers are objects; anything else has nothing to say.
    const content = membersIn(value);
    onAnswer({ action, ...(isAccepted && question.mode === "form" && { content }) }).catch(
      (thrown: unknown) => {
        setFailure(toApiError(thrown).failure);
        setSent(false);
      },
    );
  };
  return { value, setValue, unread, setUnread, isSent, failure, send };
}
