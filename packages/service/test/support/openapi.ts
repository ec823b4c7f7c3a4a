/** docs/openapi.json: the actions as an OpenAPI 3.1 document, one line for each path. */
import { errorBody } from '@sandlot/shared/account/api'
import { ACTIONS } from '@sandlot/shared/actions'
import type { Action } from '@sandlot/shared/base/action'
import { sessionEvent } from '@sandlot/shared/chat/events'
import { z } from 'zod'

const ABOUT = {
  openapi: '3.1.0',
  info: { title: 'Sandlot', version: '1', description: 'Meaning, queries and errors: docs/api.md.' },
}

/** The whole document. */
export function openApi(): string {
  const actions = Object.entries<Action>(ACTIONS)
  const paths = Map.groupBy(actions, ([, { route }]) => pathOf(route))
  const lines = [...paths].map(([path, all]) => {
    const operations = all.map(([name, action]) => [methodOf(action.route), operation(name, action)] as const)
    return `    ${JSON.stringify(path)}: ${JSON.stringify(Object.fromEntries(operations))}`
  })
  const components = {
    securitySchemes: {
      cookie: { type: 'apiKey', in: 'cookie', name: 'sandlot.session_token' },
      key: { type: 'http', scheme: 'bearer' },
    },
    schemas: { Error: schemaOf(errorBody, 'output') },
  }
  const head = Object.entries({ ...ABOUT, components }).map(
    ([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)},\n`,
  )
  return `{\n${head.join('')}  "paths": {\n${lines.join(',\n')}\n  }\n}\n`
}

function operation(operationId: string, { route, scope, role, params, request, response, status }: Action) {
  const needed = [...(role === 'admin' ? ['admin'] : []), scope]
  return {
    operationId,
    security: scope === 'public' ? [] : [{ cookie: [] }, ...(scope === 'cookie' ? [] : [{ key: needed }])],
    parameters: [...route.matchAll(/:(\w+)/g)].map(([, name = '']) => {
      const checked = params?.shape[name]
      const schema = checked instanceof z.ZodType ? schemaOf(checked, 'input') : { type: 'string' }
      return { name, in: 'path', required: true, schema }
    }),
    requestBody: request === undefined ? undefined : { required: true, content: contentOf(request, 'input') },
    responses: {
      [status ?? (response === undefined ? 204 : 200)]: {
        description: 'Done',
        content: response === undefined ? undefined : contentOf(response, 'output'),
      },
      default: {
        description: 'Refused or failed',
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    },
  }
}

function contentOf(body: z.ZodType | 'bytes', io: 'input' | 'output') {
  return body === 'bytes' ? { '*/*': {} } : { 'application/json': { schema: schemaOf(body, io) } }
}

/** Events are described where they are defined: inline they would be half of the document. */
const EVENT = { type: 'object', description: 'An event: packages/shared/src/chat/events.ts' }

function schemaOf(schema: z.ZodType, io: 'input' | 'output') {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      if (zodSchema !== sessionEvent) return
      for (const name of Object.keys(jsonSchema)) Reflect.deleteProperty(jsonSchema, name)
      Object.assign(jsonSchema, EVENT)
    },
  })
  return rest
}

/** `/api/rules/{id}` */
function pathOf(route: string): string {
  return route.slice(route.indexOf(' ') + 1).replaceAll(/:(\w+)/g, '{$1}')
}

function methodOf(route: string): string {
  return route.slice(0, route.indexOf(' ')).toLowerCase()
}
