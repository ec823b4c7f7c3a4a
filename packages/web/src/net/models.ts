/** Endpoints of models, for administrators. Failures are `ApiError`s. */
import {
  type EndpointRequest,
  type EndpointTest,
  type EndpointTestResult,
  endpointTestResult,
  type ModelsView,
  joinedModelsView,
} from '@sandlot/shared/account/models-api'
import { call } from './http.ts'

export function fetchModels(): Promise<ModelsView> {
  return call(joinedModelsView, 'GET', '/api/models')
}

/** `id` null: a new one. `apiKey` undefined: the one that is there stays; null: none. */
export function putEndpoint(id: string | null, endpoint: EndpointRequest): Promise<ModelsView> {
  return id === null
    ? call(joinedModelsView, 'POST', '/api/models', endpoint)
    : call(joinedModelsView, 'PUT', `/api/models/${encodeURIComponent(id)}`, endpoint)
}

export function removeEndpoint(id: string): Promise<ModelsView> {
  return call(joinedModelsView, 'DELETE', `/api/models/${encodeURIComponent(id)}`)
}

export function tryEndpoint(what: EndpointTest): Promise<EndpointTestResult> {
  return call(endpointTestResult, 'POST', '/api/models/test', what)
}
