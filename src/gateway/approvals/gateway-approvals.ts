import { type LoadedConfig, tellsApart } from "../config/loaded-config.ts";
import { createTicket, WebhookNotifier } from "./approval-webhook.ts";
import { Approvals, type ApprovalsOptions, type DecidedApproval, USUAL_APPROVALS } from "./approvals.ts";

/** Where the page lies on which people decide. */
export const APPROVALS_PATH = "/approvals";

/** What the approvals of a gateway need of it. */
export interface GatewayApprovalsOptions
  extends Pick<ApprovalsOptions, "records" | "policyOf" | "operationOf" | "sourceOf" | "mask"> {
  /** Hears what was decided here. */
  readonly onDecided?: ((decided: DecidedApproval) => void) | undefined;
  /** Hears what is odd. */
  readonly onWarning: (message: string, cause?: unknown) => void;
}

/** The approvals of a gateway, as its config says, which may change at any time. */
export class GatewayApprovals extends Approvals {
  readonly #current: { loaded: LoadedConfig; served: string | undefined };
  readonly #notifier: WebhookNotifier;

  constructor(loaded: LoadedConfig, options: GatewayApprovalsOptions) {
    const current: { loaded: LoadedConfig; served: string | undefined } = { loaded, served: undefined };
    const notifier = new WebhookNotifier(options.onWarning);
    const base = (): string | undefined =>
      hasPage(current.loaded)
        ? (current.loaded.config.serve?.publicUrl ?? current.served)?.replace(/\/+$/, "")
        : undefined;
    const { records, policyOf, operationOf, sourceOf, mask, onDecided = () => {} } = options;
    super({
      records,
      policyOf,
      operationOf,
      sourceOf,
      mask,
      most: () => current.loaded.config.limits?.approvals ?? USUAL_APPROVALS,
      isShared: () => tellsApart(current.loaded),
      // Without an address there is nowhere to answer at.
      createTicket: () =>
        current.loaded.config.approvals?.webhook === undefined || base() === undefined
          ? undefined
          : createTicket(),
      onAsked(record, ticket) {
        const { webhook } = current.loaded.config.approvals ?? {};
        const url = base();
        if (webhook === undefined || url === undefined) return;
        notifier.tell(webhook, record, `${url}${APPROVALS_PATH}/answer/${record.id}/${ticket}`);
      },
      onDecided,
      addressOf: (id) => {
        const url = base();
        return url && `${url}${APPROVALS_PATH}/${id}`;
      },
    });
    this.#current = current;
    this.#notifier = notifier;
  }

  /** Holds calls as another config says from now on. */
  update(loaded: LoadedConfig): void {
    this.#current.loaded = loaded;
  }

  /** Says where the gateway listens, where the config does not say how it is reached. */
  servedAt(url: string): void {
    this.#current.served = url;
  }

  /** Whether a policy holds calls. */
  get isUsed(): boolean {
    return isUsed(this.#current.loaded);
  }

  /** Whether the page is served. */
  get hasPage(): boolean {
    return hasPage(this.#current.loaded);
  }

  override close(): void {
    super.close();
    this.#notifier.close();
  }
}

/** Where a policy holds calls, people need somewhere to decide. */
function hasPage(loaded: LoadedConfig): boolean {
  return loaded.config.approvals?.page ?? isUsed(loaded);
}

function isUsed({ config }: LoadedConfig): boolean {
  const { policies = {}, mcpServers = {}, openapi = {}, bus } = config;
  const sources = [...Object.values(mcpServers), ...Object.values(openapi), bus];
  return [...Object.values(policies), ...sources.map((source) => source?.policy)].some(
    (policy) => policy?.approve !== undefined,
  );
}
