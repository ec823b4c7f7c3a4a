/** `_sandlot/models`: endpoints of models, for administrators. */
import { EXT } from '@sandlot/shared/acp/meta'
import type { EndpointTestResult, ModelsView } from '@sandlot/shared/account/models-api'
import { testEndpoint } from '../../model/endpoint-test.ts'
import { actorOf } from '../actor.ts'
import type { AdminParts, ProtocolParts } from '../parts.ts'
import type { ExtensionHandlers } from '../handler-context.ts'

export function modelsRequests({ models: registry, log }: AdminParts & ProtocolParts) {
  return {
    [EXT.models]: async ({ params: { user, ask }, signal }): Promise<ModelsView | EndpointTestResult> => {
      if (ask.do === 'test') {
        const key = ask.apiKey ?? (ask.id === undefined ? undefined : await keyFor(ask.id, ask.baseUrl))
        return testEndpoint(ask, key ?? '', signal)
      }
      if (ask.do === 'put') {
        const { do: _put, id, revision, apiKey, ...endpoint } = ask
        await registry.put(endpoint, { id, revision, apiKey }, (before) => ({
          ...actorOf(user),
          what: 'endpoint_changed',
          whom: { id, name: endpoint.name },
          before,
          after: { ...endpoint, key: keyWord(apiKey) },
        }))
        log.info({ by: user.id, endpoint: endpoint.name }, 'an administrator changed a model endpoint')
      } else if (ask.do === 'remove') {
        await registry.remove(ask.id, (before) => ({
          ...actorOf(user),
          what: 'endpoint_removed',
          whom: { id: ask.id, name: before?.name },
          before,
        }))
        log.info({ by: user.id, endpoint: ask.id }, 'an administrator removed a model endpoint')
      }
      return registry.view
    },
  } satisfies Partial<ExtensionHandlers>

  /** Its key is for its own address alone. */
  async function keyFor(id: string, baseUrl: string): Promise<string | undefined> {
    const known = registry?.view.endpoints.find((one) => one.id === id)
    return known?.baseUrl === baseUrl ? registry?.keyOf(id) : undefined
  }
}

/** The change of the key, never the key itself. */
function keyWord(apiKey: string | null | undefined): string {
  if (apiKey === undefined) return 'unchanged'
  return apiKey === null ? 'removed' : 'set'
}
