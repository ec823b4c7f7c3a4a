/** Signing in to an MCP server: there, and back by an OAuth redirect. The page shows the result. */
import { EXT, mcpSignInResult } from '@sandlot/shared/acp/meta'
import { MCP_SIGN_IN_PATH } from '@sandlot/shared/base/mcp-client'
import {
  type McpServersAsk,
  type ServerScope,
  serverScope,
  serverSignIn,
} from '@sandlot/shared/admin/mcp-servers'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { agentUserOf } from '../../auth/agent-user.ts'
import { html } from 'hono/html'
import type { Handlers } from '../actions.ts'
import type { Ctx, Parts } from '../context.ts'

/** Says from which list of servers a person went to sign in. */
const SIGN_IN_FROM = 'sandlot_mcp_from'
/** A link is valid so long. */
const SIGN_IN_SECONDS = 600
const SECTION: Record<ServerScope, string> = { own: 'servers', deployment: 'mcp' }

export function mcpHandlers(parts: Parts) {
  return {
    signInToServer: (c) => beginSignIn(parts, c, { of: 'own', id: c.req.param('id') }),
    signInToEverybodysServer: (c) => beginSignIn(parts, c, { of: 'deployment', id: c.req.param('id') }),
    finishMcpSignIn: (c) => finishSignIn(parts, c),
  } satisfies Partial<Handlers>
}

async function beginSignIn(
  { agent, config }: Parts,
  c: Ctx,
  server: { of: ServerScope; id: string },
): Promise<Response> {
  const user = agentUserOf(c.var.caller)
  const ask = { do: 'sign_in', ...server } satisfies McpServersAsk
  const answer = serverSignIn.parse(await agent.request(EXT.mcpServers, { user, ask }))
  // Brings the user back to that list.
  setCookie(c, SIGN_IN_FROM, server.of, {
    path: MCP_SIGN_IN_PATH,
    httpOnly: true,
    sameSite: 'Lax',
    secure: config.publicUrl?.startsWith('https:') === true,
    maxAge: SIGN_IN_SECONDS,
  })
  return c.json(answer)
}

async function finishSignIn({ agent }: Parts, c: Ctx): Promise<Response> {
  const answer = new URL(c.req.url).search.slice(1)
  const result = mcpSignInResult.parse(
    await agent.request(EXT.mcpSignIn, { user: agentUserOf(c.var.caller), answer }),
  )
  const from = serverScope.safeParse(getCookie(c, SIGN_IN_FROM)).data
  if (from !== undefined) {
    deleteCookie(c, SIGN_IN_FROM, { path: MCP_SIGN_IN_PATH })
    if ('server' in result)
      return c.redirect(`/settings/${SECTION[from]}?connected=${encodeURIComponent(result.server)}`, 303)
  }
  const text =
    'server' in result
      ? `${result.server} is connected. You can close this page and go on in the chat.`
      : result.problem
  // The address holds a code: it is kept out of caches and, by the referrer policy, from other
  // sites.
  c.header('cache-control', 'no-store')
  return c.html(
    html`<!doctype html>
      <html lang="en">
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width" />
        <title>Sandlot</title>
        <body style="font: 1rem system-ui; max-width: 36rem; margin: 15vh auto; padding: 0 1rem">
          <p>${text}</p>
          ${
            from === undefined
              ? html`<p><a href="/">Back to the chat</a></p>`
              : html`<p><a href="/settings/${SECTION[from]}">Back to the MCP servers</a></p>`
          }
        </body>
      </html>`,
    'server' in result ? 200 : 400,
  )
}
