//! Carries requests to servers through the connections of a launch: its proxies, its certificates.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use loopd_mcp::port::{HttpFailure, HttpMethod, HttpPort, HttpRequest, HttpResponse};
use loopd_model::http::{HttpCarrier, Url};

/// The connections of a launch.
pub struct LaunchWeb(pub Arc<dyn HttpCarrier>);

impl HttpPort for LaunchWeb {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, HttpFailure>> {
        async move {
            let url = Url::parse(&request.url);
            let url =
                url.map_err(|error| HttpFailure(format!("its address is not valid: {error}")))?;
            let sent = self.0.send(loopd_model::http::HttpRequest {
                method: match request.method {
                    HttpMethod::Get => loopd_model::http::HttpMethod::Get,
                    HttpMethod::Post => loopd_model::http::HttpMethod::Post,
                    HttpMethod::Delete => loopd_model::http::HttpMethod::Delete,
                },
                url,
                headers: request.headers,
                body: request.body,
            });
            let response = sent.await.map_err(|error| HttpFailure(error.to_string()))?;
            let body = response.body;
            Ok(HttpResponse {
                status: response.status,
                headers: response.headers,
                body: body
                    .map(|chunk| chunk.map_err(|error| HttpFailure(error.to_string())))
                    .boxed(),
            })
        }
        .boxed()
    }
}
