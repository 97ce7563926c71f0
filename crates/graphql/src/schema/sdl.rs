//! Prints a schema in the GraphQL schema definition language (SDL), for apollo-compiler and for users.

use std::fmt::Write as _;

use super::Schema;
use super::model::{ArgumentDef, Kind, Shape, TypeDef};

impl Schema {
    /// Prints the types in SDL, without the introspection types.
    pub fn to_sdl(&self) -> String {
        let mut out = String::new();
        for type_ in self.types.iter().filter(|type_| !type_.name.starts_with("__")) {
            self.type_sdl(type_, &mut out);
        }
        out
    }

    fn type_sdl(&self, type_: &TypeDef, out: &mut String) {
        let keyword = match type_.kind {
            Kind::Scalar(super::Scalar::Json) => {
                let _ = writeln!(out, "scalar {}", type_.name);
                return;
            }
            Kind::Scalar(_) | Kind::Enum => return,
            Kind::Object => "type",
            Kind::Interface(_) => "interface",
        };
        let _ = write!(out, "{keyword} {}", type_.name);
        for (index, interface) in type_.interfaces.iter().enumerate() {
            let word = if index == 0 { "implements" } else { "&" };
            let _ = write!(out, " {word} {}", self.types[*interface].name);
        }
        out.push_str(" {\n");
        for field in &type_.fields {
            let _ = write!(out, "  {}", field.name);
            self.arguments_sdl(&field.arguments, out);
            let _ = writeln!(out, ": {}", self.show(field.shape));
        }
        out.push_str("}\n");
    }

    fn arguments_sdl(&self, arguments: &[ArgumentDef], out: &mut String) {
        for (index, argument) in arguments.iter().enumerate() {
            let _ = write!(out, "{}{}: ", if index == 0 { "(" } else { ", " }, argument.name);
            out.push_str(&self.show(argument.shape));
        }
        if !arguments.is_empty() {
            out.push(')');
        }
    }

    /// Formats a type in GraphQL syntax, such as `[App_v1!]`.
    pub fn show(&self, shape: Shape) -> String {
        let name = &self.types[shape.named].name;
        let required = if shape.required { "!" } else { "" };
        if shape.list { format!("[{name}!]{required}") } else { format!("{name}{required}") }
    }
}
