import { useState } from "preact/hooks";
import { Logo } from "./parts/logo.tsx";

/** Asks for a token before anything else is shown. */
export function TokenGate({
  isWrong,
  onToken,
}: {
  /** Whether one was given that the gateway does not know. */
  readonly isWrong: boolean;
  readonly onToken: (token: string) => void;
}) {
  const [token, setToken] = useState("");
  const enter = (event: Event): void => {
    event.preventDefault();
    if (token.trim() !== "") onToken(token.trim());
  };
  return (
    <main class="content gate">
      <form class="card stack" onSubmit={enter}>
        <div class="brand">
          <Logo />
          <h1>Waybill inspector</h1>
        </div>
        <p>
          Enter a token from the config of the gateway (serve.auth.tokens), or open the address that `waybill
          inspect` printed.
        </p>
        <label>
          Token
          <input
            type="password"
            autocomplete="off"
            value={token}
            aria-invalid={isWrong}
            aria-describedby="token-wrong"
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        {isWrong && (
          <p id="token-wrong" role="alert" class="notice bad">
            The gateway does not know this token.
          </p>
        )}
        <div class="row">
          <button type="submit" class="primary" disabled={token.trim() === ""}>
            Enter
          </button>
        </div>
      </form>
    </main>
  );
}
