//! Product of the real store.

use s3_sim::Dialect;

/// Product of a real store. A known difference of one excuses no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// MinIO.
    MinIo,
    /// Versity's gateway with a file system as its backend.
    VersityGw,
    /// Any other product, without known differences.
    Other,
}

impl Server {
    /// Detects the product from the `Server` header.
    pub fn from_header(header: &str) -> Self {
        match header {
            "MinIO" => Self::MinIo,
            "VERSITYGW" => Self::VersityGw,
            _ => Self::Other,
        }
    }

    /// Returns the name of the product.
    pub fn name(self) -> &'static str {
        match self {
            Self::MinIo => "MinIO",
            Self::VersityGw => "versitygw",
            Self::Other => "an unknown store",
        }
    }

    /// Returns the dialect that the simulated store has to use.
    pub fn dialect(self, region: &str) -> Dialect {
        Dialect { region: region.to_owned(), ..Dialect::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_known_by_their_header() {
        assert_eq!(Server::from_header("MinIO"), Server::MinIo);
        assert_eq!(Server::from_header("VERSITYGW"), Server::VersityGw);
        assert_eq!(Server::from_header("AmazonS3"), Server::Other);
    }
}
