/** Endpoints of models, for administrators. Failures are `ApiError`s. */
import {
  type Endpoint,
  type EndpointTest,
  type EndpointTestResult,
  endpointTestResult,
  type ModelsView,
  modelsView,
} from '@sandlot/shared/account/models-api'
import { call } from './http.ts'

export function fetchModels(): Promise<ModelsView> {
  return call(modelsView, 'GET', '/api/models')
}

/** `id` null: a new one. `apiKey` undefined: the one that is there stays; null: none. */
export function putEndpoint(
  id: string | null,
  endpoint: Endpoint & { revision: number; apiKey: string | null | undefined },
): Promise<ModelsView> {
  return id === null
    ? call(modelsView, 'POST', '/api/models', endpoint)
    : call(modelsView, 'PUT', `/api/models/${encodeURIComponent(id)}`, endpoint)
}

export function removeEndpoint(id: string): Promise<ModelsView> {
  return call(modelsView, 'DELETE', `/api/models/${encodeURIComponent(id)}`)
}

export function tryEndpoint(what: EndpointTest): Promise<EndpointTestResult> {
  return call(endpointTestResult, 'POST', '/api/models/test', what)
}
