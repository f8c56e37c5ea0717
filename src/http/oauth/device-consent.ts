import { setTimeout as delay } from "node:timers/promises";
import { deviceAuthorizationRequest, processDeviceAuthorizationResponse } from "oauth4webapi";
import { parseUrl } from "../../core/text/parse-url.ts";
import { mayAsk, SignInError } from "./oauth-authorizer.ts";
import { clientAuthOf, type Flow, requestTokens, type SignInOptions } from "./oauth-flow.ts";
import type { OAuthStore } from "./oauth-store.ts";
import { plainOptions, toSignInFailure } from "./token-request.ts";

/** The grant type of RFC 8628. */
export const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

/** Seconds between two questions where the authorization server names none, and by how many it may slow us down. */
const INTERVAL_SECONDS = 5;
const LONGEST_INTERVAL_SECONDS = 60;
/** A longer interval than a timer takes would be none at all. */
const MOST_SECONDS = 3_600;

/** Has a person consent on another device, and asks until they have (RFC 8628). */
export async function consentOnDevice(
  store: OAuthStore,
  flow: Flow,
  { onDevice, signal }: SignInOptions,
): Promise<void> {
  const { server, scope, resource, serverUrl } = flow;
  const endpoint = parseUrl(server.device_authorization_endpoint ?? "");
  if (endpoint === undefined) {
    throw new SignInError("unusable", "The authorization server gives no codes for other devices.");
  }
  const asked = await askForCode(store, flow, {
    ...(scope !== undefined && { scope }),
    ...(resource !== undefined && { resource: resource.id }),
  });
  const url = parseUrl(asked.verification_uri);
  if (url === undefined || !mayAsk(url, serverUrl)) {
    throw new SignInError("unsafe", "The authorization server names a page that nobody should be sent to.");
  }
  const whole = asked.verification_uri_complete;
  const isWhole = whole !== undefined && parseUrl(whole)?.origin === url.origin;
  onDevice?.({ url: url.href, code: asked.user_code, ...(isWhole && { wholeUrl: whole }) });
  const params = new URLSearchParams({ grant_type: DEVICE_GRANT, device_code: asked.device_code });
  const until = Date.now() + asked.expires_in * 1_000;
  let seconds = Math.min(Math.max(1, asked.interval ?? INTERVAL_SECONDS), MOST_SECONDS);
  while (Date.now() < until) {
    await delay(seconds * 1_000, undefined, { signal });
    try {
      return await requestTokens(store, flow, { params, scope: scope ?? "" });
    } catch (failure) {
      const error = failure instanceof SignInError ? failure.oauthError : undefined;
      const slower = Math.min(seconds + INTERVAL_SECONDS, LONGEST_INTERVAL_SECONDS);
      if (error === "slow_down") seconds = Math.max(seconds, slower);
      else if (error !== "authorization_pending") throw failure;
    }
  }
  throw new SignInError("consent_needed", "The code for the other device was not used in time.");
}

async function askForCode(store: OAuthStore, flow: Flow, params: Readonly<Record<string, string>>) {
  const { server, fetch } = flow;
  const client = { client_id: flow.client.client_id };
  try {
    const auth = clientAuthOf(store, flow);
    const response = await deviceAuthorizationRequest(server, client, auth, params, plainOptions(fetch));
    return await processDeviceAuthorizationResponse(server, client, response);
  } catch (thrown) {
    throw toSignInFailure(thrown);
  }
}
